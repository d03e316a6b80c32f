import { accountsInUse } from '../accounts/key-uses.ts';
import { backupHealth, healthText } from '../backup/scheduled.ts';
import { sandbox_name } from '../catalog/check-settings.ts';
import { endText } from '../catalog/dated.ts';
import type { Model, Settings } from '../catalog/model.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { lastCheck } from '../money/reconciliation.ts';
import type { Engine } from '../queue/queue.ts';
import { openRoutes, routeName } from '../routing/health.ts';
import { unfinishedTasks } from '../tasks/overview.ts';
import { updateAlerts, type Cause, type OperatorKind } from './alert.ts';
import { disksOf } from './disks.ts';
import { failingService } from './error-rate.ts';

/** The parts of the app that a check of the service takes. */
export type OperatorParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly engine: Pick<Engine, 'backlog'>;
  readonly catalog: {
    readonly current: { readonly settings: Settings; readonly models: ReadonlyMap<string, Model> };
  };
};

/** Checks the service itself for causes of alerts, and opens and closes alerts. */
export async function checkService(app: OperatorParts): Promise<void> {
  const now = new Date(app.clock.now());
  const checks = [providersDown, failedCalls, fullDisks, oldBackups, endingModels, oldQueues, wrongBooks];
  const causes: Cause[] = [];
  for (const check of checks) causes.push(...(await check(app, now)));
  const days = new Set(causes.filter(({ kind }) => kind === 'model_retiring').map(({ subject }) => subject));
  // That a day has come is no news.
  const isWithdrawn = ({ kind, subject }: Cause) => kind === 'model_retiring' && !days.has(subject);
  await updateAlerts(app.db, 'operators', { causes, isWithdrawn }, now);
}

type Facts = { subject: string; level: 1 | 2; title: string; summary: string };

function causeOf(kind: OperatorKind, facts: Facts): Cause {
  return { account_id: null, kind, mark: null, ...facts };
}

/** A route that was open for a shorter time may have healed by itself. */
const down_ms = 5 * 60_000;

/** Behind other routes one may be asked never again: so long after its last pause nobody knows whether it fails. */
const unknown_ms = 60 * 60_000;

/** Routes that fail for all accounts, or for each one that has sent a request within the hour, with what fails. */
async function failingRoutes(db: Db, now: Date): Promise<Map<string, string>> {
  const now_ms = now.getTime();
  const circuits = (await openRoutes(db, now)).filter(
    ({ opened_at, retry_at }) => opened_at.getTime() <= now_ms - down_ms && retry_at.getTime() > now_ms - unknown_ms,
  );
  if (circuits.length === 0) return new Map();
  const here = await accountsInUse(db, new Date(now_ms - unknown_ms));
  const failing = new Map<string, string>();
  for (const [route, of_route] of Map.groupBy(circuits, (circuit) => circuit.route)) {
    const accounts = new Set(of_route.map(({ account_id }) => account_id));
    const [first] = of_route;
    if (first && (accounts.has(null) || here.every((id) => accounts.has(id)))) failing.set(route, first.cause);
  }
  return failing;
}

/** Providers with a route that fails for all accounts. Critical: a model has no other route. */
async function providersDown({ db, catalog }: OperatorParts, now: Date): Promise<Cause[]> {
  const open = await failingRoutes(db, now);
  const down = new Map<string, { routes: string[]; without: string[] }>();
  for (const { id, routes } of catalog.current.models.values()) {
    const is_without = routes.every((route) => open.has(routeName(id, route.id)));
    for (const route of routes) {
      const name = routeName(id, route.id);
      const cause = open.get(name);
      if (cause === undefined) continue;
      const facts = down.get(route.provider) ?? { routes: [], without: [] };
      facts.routes.push(`${name} (${cause})`);
      if (is_without) facts.without.push(id);
      down.set(route.provider, facts);
    }
  }
  return [...down].map(([provider, { routes, without }]) => {
    const none = without.length === 0 ? '' : ` No other route is left of ${listed(without)}.`;
    return causeOf('provider_down', {
      subject: provider,
      level: without.length > 0 ? 2 : 1,
      title: `${provider} is down`,
      summary: `These routes fail for all accounts: ${listed(routes)}.${none} The page Failures has the provider's own words.`,
    });
  });
}

const names_max = 20;

function listed(names: readonly string[]): string {
  const more = names.length - names_max;
  return names.slice(0, names_max).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

const failed_percent = 20;
const failed_percent_critical = 50;

/** Without what the sandbox alone runs: callers script its failures. */
async function failedCalls({ db, catalog }: OperatorParts, now: Date): Promise<Cause[]> {
  const scripted = [...catalog.current.models.values()].filter(({ routes }) =>
    routes.every(({ provider }) => provider === sandbox_name),
  );
  const models_left_out = scripted.map(({ id }) => id);
  const rate = await failingService(db, { percent: failed_percent, models_left_out }, now);
  if (!rate) return [];
  const { ended, failed } = rate;
  const percent = Math.round((failed / ended) * 100);
  const summary = `${failed} of ${ended} calls and generations of all accounts failed in the last 15 minutes (${percent} %). The page Failures has the reasons.`;
  const level = percent >= failed_percent_critical ? 2 : 1;
  return [causeOf('error_rate', { subject: '', level, title: 'Many calls fail', summary })];
}

async function fullDisks({ db, catalog }: OperatorParts, now: Date): Promise<Cause[]> {
  const { disk_percent_min } = catalog.current.settings.alerts;
  return (await disksOf(db, now)).flatMap(({ host, path, free_bytes, size_bytes }) => {
    const percent = (free_bytes / size_bytes) * 100;
    if (percent >= disk_percent_min) return [];
    const free = `${(free_bytes / 1e9).toFixed(1)} GB (${percent.toFixed(1)} %)`;
    return [
      causeOf('disk', {
        subject: `${host} ${path}`,
        level: percent < disk_percent_min / 3 ? 2 : 1,
        title: `Little free space on ${host}`,
        summary: `The disk of ${path} on ${host} has ${free} of free space left. A full disk stops uploads, outputs and the database. Delete what is not needed, or keep files for less time.`,
      }),
    ];
  });
}

const failures_max = 2;

async function oldBackups({ db, catalog }: OperatorParts, now: Date): Promise<Cause[]> {
  const health = await backupHealth(db, catalog.current.settings, now.getTime());
  if (!health || (!health.is_late && health.failures <= failures_max)) return [];
  const title = health.is_late ? 'Backups are missing' : 'Backups fail';
  const summary = `Scheduled backups: ${healthText(health, now.getTime())}. "medley backups" has all of them.`;
  return [causeOf('backup_old', { subject: '', level: health.is_late ? 2 : 1, title, summary })];
}

const ending_ms = 30 * 86_400_000;

/** One for each day on which models end. */
async function endingModels({ catalog }: OperatorParts, now: Date): Promise<Cause[]> {
  const last = new Date(now.getTime() + ending_ms).toISOString().slice(0, 10);
  const days = new Map<string, { lines: string[]; models: { id: string; replacement: string | null }[] }>();
  for (const { id, hidden, retirement } of catalog.current.models.values()) {
    if (!retirement || retirement.on > last) continue;
    const day = days.get(retirement.on) ?? { lines: [], models: [] };
    day.lines.push(`${id} ${endText(retirement)}`);
    if (!hidden) day.models.push({ id, replacement: retirement.replaced_by ?? null });
    days.set(retirement.on, day);
  }
  return [...days].map(([day, { lines, models }]) => {
    const title = `Models end on ${day}`;
    const cause = causeOf('model_retiring', { subject: day, level: 1, title, summary: listed(lines) });
    return models.length === 0
      ? cause
      : { ...cause, event: { type: 'model.retiring', data: { ends_on: day, models } } };
  });
}

const queued_ms_max = 10 * 60_000;
const due_s_max = 300;

/** Tasks that wait, and jobs that nobody takes. */
async function oldQueues({ db, engine }: OperatorParts, now: Date): Promise<Cause[]> {
  const { oldest_queued_at, queued } = await unfinishedTasks(db);
  const waited_ms = oldest_queued_at ? now.getTime() - oldest_queued_at.getTime() : 0;
  const late = (await engine.backlog()).filter(
    ({ name, oldest_s }) => !name.startsWith('duty.') && (oldest_s ?? 0) > due_s_max,
  );
  const causes: Cause[] = [];
  if (waited_ms > queued_ms_max) {
    const summary = `The oldest of ${queued} queued tasks has waited ${Math.floor(waited_ms / 60_000)} minutes: its provider is full, or there are too few workers. The page Queue & workers has both.`;
    causes.push(causeOf('queue_age', { subject: 'tasks', level: 1, title: 'Tasks wait', summary }));
  }
  if (late.length > 0) {
    const summary = `Jobs of ${listed(late.map(({ name, oldest_s }) => `${name} (${oldest_s} s)`))} are due and nobody takes them. Start a worker, or let a paused one go on.`;
    causes.push(causeOf('queue_age', { subject: 'jobs', level: 2, title: 'Jobs wait', summary }));
  }
  return causes;
}

async function wrongBooks({ db }: OperatorParts): Promise<Cause[]> {
  const check = await lastCheck(db);
  if (!check || check.ok) return [];
  const summary = `The last check of the books found a difference of ${check.difference}. Keep a backup, run "medley books", and report it.`;
  return [causeOf('books', { subject: '', level: 2, title: 'The books do not add up', summary })];
}
