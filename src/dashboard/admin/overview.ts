import { counted } from '../../lib/counted.ts';
import type { AddressRules } from '../../net/address.ts';
import package_json from '../../../package.json' with { type: 'json' };
import { currenciesInUse } from '../../accounts/accounts.ts';
import { reload_channel } from '../../app/channels.ts';
import { backupHealth, healthText, type BackupHealth } from '../../backup/scheduled.ts';
import { readAdded } from '../../catalog/added/rows.ts';
import { checkCatalogFile, checkDefaults } from '../../catalog/catalog.ts';
import { endingSoon } from '../../catalog/dated.ts';
import { needsKey } from '../../catalog/default.ts';
import { listOverrides, type Override } from '../../catalog/overrides.ts';
import type { Model } from '../../catalog/model.ts';
import { showProblem } from '../../catalog/problem.ts';
import { chatsOverview } from '../../chat/overview.ts';
import { isAlive } from './queue.ts';
import { appliedMigrations, pendingMigrations } from '../../db/migrate.ts';
import type { NodeView } from '../../queue/queue.ts';
import { lastCheck, type BooksCheck } from '../../money/reconciliation.ts';
import { adapterFacts } from '../../providers/facts.ts';
import { adapters } from '../../providers/index.ts';
import { modelCheckLines } from '../../monitoring/model-check.ts';
import { openRoutes } from '../../routing/health.ts';
import { readJournals, type JournalEntry } from '../../storage/journal.ts';
import { tasksOverview } from '../../tasks/overview.ts';
import { marginViews, monthOf } from './lists.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import type { AdminCheck, AdminConfiguration, AdminOverview, AdminReload, Light } from '../views/admin.ts';

const day_ms = 86_400_000;

/** The state of the service at a glance. */
export const admin_overview = session_endpoint('GET', '/dash/admin/overview', 'operator', async (app) => {
  const now = new Date(app.clock.now());
  const since = new Date(now.getTime() - day_ms);
  const [tasks, chats, queues, nodes, open, books] = await Promise.all([
    tasksOverview(app.db, now),
    chatsOverview(app.db, since),
    app.engine.backlog(),
    app.engine.nodes(),
    openRoutes(app.db, now),
    lastCheck(app.db),
  ]);
  const oldest_ms = tasks.oldest_queued_at ? now.getTime() - tasks.oldest_queued_at.getTime() : null;
  const view: AdminOverview = {
    lights: [
      queueLight(oldest_ms),
      workersLight(nodes),
      routesLight(new Set(open.map(({ route }) => route)).size),
      shareLight('Generations', tasks.failed_24h, tasks.failed_24h + tasks.succeeded_24h),
      shareLight('Chat', chats.failed, chats.calls),
      booksLight(books, now),
      ...backupLights(await backupHealth(app.db, app.catalog.current.settings, now.getTime()), now.getTime()),
      journalLight(await readJournals(app.config.data_dir)),
    ],
    tasks: {
      queued: tasks.queued,
      running: tasks.running,
      oldest_queued_s: oldest_ms === null ? null : Math.round(oldest_ms / 1000),
      succeeded_24h: tasks.succeeded_24h,
      failed_24h: tasks.failed_24h,
    },
    chats: {
      calls_24h: chats.calls,
      failed_24h: chats.failed,
      first_words_p50_ms: chats.p50_ms,
      first_words_p95_ms: chats.p95_ms,
    },
    jobs: queues.reduce((sum, { waiting }) => sum + waiting, 0),
    margins: await marginViews(app.db, monthOf(now), 'model'),
  };
  return { status: 200, body: view };
});

/** Checks begin every five minutes; the first one of many entries takes longer. */
const check_age_ms_max = 30 * 60_000;

/** The last check of the books, and its age: a page asks for none. */
function booksLight(check: BooksCheck | undefined, now: Date): Light {
  const name = 'Books';
  if (!check) return { name, state: 'warning', detail: 'not checked yet' };
  const age_ms = Math.max(0, now.getTime() - check.started_at.getTime());
  const age = age_ms < 60_000 ? 'a moment ago' : `${counted(Math.floor(age_ms / 60_000), 'minute')} ago`;
  const detail = `${counted(check.entries, 'entry', 'entries')}, difference ${check.difference}, checked ${age}`;
  return { name, state: !check.ok ? 'bad' : age_ms > check_age_ms_max ? 'warning' : 'good', detail };
}

function queueLight(oldest_ms: number | null): Light {
  const name = 'Queue';
  if (oldest_ms === null) return { name, state: 'good', detail: 'nothing waits' };
  const state = oldest_ms > 300_000 ? 'bad' : oldest_ms > 30_000 ? 'warning' : 'good';
  return { name, state, detail: `the oldest task has waited ${Math.round(oldest_ms / 1000)} s` };
}

/** Ends of chat calls that wait for the database on the disk of this node. */
function journalLight(entries: readonly JournalEntry[]): Light {
  const [oldest] = entries;
  if (!oldest) return { name: 'Journal', state: 'good', detail: 'nothing waits' };
  return { name: 'Journal', state: 'warning', detail: `${entries.length} entries wait, the oldest since ${oldest.at}` };
}

/** None where no backups are scheduled. */
function backupLights(health: BackupHealth | undefined, now_ms: number): Light[] {
  if (!health) return [];
  const state = health.is_late ? 'bad' : health.failures > 0 || !health.last ? 'warning' : 'good';
  return [{ name: 'Backups', state, detail: healthText(health, now_ms) }];
}

function workersLight(nodes: readonly NodeView[]): Light {
  const name = 'Workers';
  const alive = nodes.filter((node) => node.role !== 'api' && isAlive(node));
  const paused = alive.filter(({ is_paused }) => is_paused).length;
  if (alive.length === paused)
    return { name, state: 'bad', detail: paused === 0 ? 'none is online' : 'all are paused' };
  const detail = `${counted(alive.length, 'node')} online`;
  if (paused === 0) return { name, state: 'good', detail };
  return { name, state: 'warning', detail: `${paused} of ${alive.length} paused` };
}

function routesLight(open: number): Light {
  const detail = open === 0 ? 'all are in use' : `${open} ${open === 1 ? 'is' : 'are'} not in use`;
  return { name: 'Routes', state: open === 0 ? 'good' : 'warning', detail };
}

function shareLight(name: string, failed: number, all: number): Light {
  if (all === 0) return { name, state: 'good', detail: 'none in 24 hours' };
  const percent = (failed / all) * 100;
  const state = percent > 20 ? 'bad' : percent > 5 ? 'warning' : 'good';
  return { name, state, detail: `${failed} of ${all} failed in 24 hours (${percent.toFixed(1)}\u00a0%)` };
}

/** The running configuration; secrets only as present or missing. */
export const admin_configuration = session_endpoint('GET', '/dash/admin/configuration', 'operator', async (app) => {
  const { settings, models, providers, warnings } = app.catalog.current;
  const ending = endingSoon(models.values(), app.clock.now());
  const [applied, pending, overrides, version, lists] = await Promise.all([
    appliedMigrations(app.db),
    pendingMigrations(app.db),
    listOverrides(app.db),
    app.db.query<{ version: string }>('select version()'),
    modelCheckLines(app.db, settings),
  ]);
  const view: AdminConfiguration = {
    file: app.config.config_file ?? null,
    version: package_json.version,
    node: process.version,
    database: version[0]?.version.split(' on ')[0] ?? '',
    migrations: { applied: applied.length, pending },
    providers: [...providers.values()].map((provider) => {
      const { name, adapter, base_url = null, api_key } = provider;
      const key = api_key !== undefined ? 'present' : needsKey(provider) ? 'missing' : 'not_needed';
      return { name, adapter, base_url, key };
    }),
    warnings: [...warnings.map(showProblem), ...strayOverrides(overrides, models), ...ending, ...lists],
    settings: [
      { name: 'Address', value: app.base_url() },
      { name: 'Currencies', value: [...settings.currencies.keys()].join(', ') },
      { name: 'Generations per minute and key', value: String(settings.limits.generate_per_minute) },
      { name: 'Chat calls per minute and key', value: String(settings.limits.chat_per_minute) },
      { name: 'Failed generations in 24 hours', value: String(settings.limits.failed_per_24h) },
      { name: 'Addresses allowed beyond public ones', value: addressesAllowed(app) },
      { name: 'Output files are kept', value: `${settings.outputs.keep_ms / day_ms} days` },
      { name: 'Finished tasks are kept', value: `${settings.tasks.keep_ms / day_ms} days` },
    ],
  };
  return { status: 200, body: view };
});

function addressesAllowed({ addressRules }: { addressRules(): AddressRules }): string {
  const { allow, allow_private } = addressRules();
  const all = [...(allow_private ? ['all private ones (MEDLEY_ALLOW_PRIVATE=1)'] : []), ...allow];
  return all.join(', ') || 'none';
}

/** Lists overrides of models that no longer exist: they count again when the model comes back. */
function strayOverrides(overrides: readonly Override[], models: ReadonlyMap<string, Model>): string[] {
  return overrides
    .filter(({ model }) => !models.has(model))
    .map(
      ({ model }) => `${model} was changed in Models & routes, but it is not configured, or no key for it is there.`,
    );
}

/** Checks the file as a reload would, without changing anything. */
export const admin_check = session_endpoint('GET', '/dash/admin/configuration/check', 'operator', async (app) => {
  const { config_file } = app.config;
  const facts = adapterFacts(adapters);
  const { errors, warnings } = config_file
    ? await checkCatalogFile(config_file, {
        ...facts,
        currencies_in_use: await currenciesInUse(app.db),
        added: await readAdded(app.db, app.content_keys),
      })
    : checkDefaults(facts);
  const view: AdminCheck = { file: config_file ?? null, ok: errors.length === 0, errors, warnings };
  return { status: 200, body: view };
});

/** This node reads its configuration again and tells how that went; the others are asked to, and log it. */
export const admin_reload = session_endpoint('POST', '/dash/admin/reload', 'operator', async (app, call) => {
  const { ok, message } = await app.catalog.reload();
  app.notifier.notify(reload_channel, call.request_id);
  await auditAction(app, call, 'configuration.reload', undefined, { ok });
  const view: AdminReload = { ok, message };
  return { status: 200, body: view };
});
