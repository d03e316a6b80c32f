import { backupHealth } from '../backup/scheduled.ts';
import type { Settings } from '../catalog/model.ts';
import { countLowBalances } from '../billing/alerts.ts';
import type { Db } from '../db/database.ts';
import { countLeases } from '../leases/leases.ts';
import type { Clock } from '../lib/clock.ts';
import { Gauge } from '../metrics/registry.ts';
import { lastCheck } from '../money/reconciliation.ts';
import type { Engine } from '../queue/queue.ts';
import { openRoutes } from '../routing/health.ts';
import { unfinishedTasks } from '../tasks/overview.ts';
import { countWaiting } from '../webhooks/delivery.ts';
import { lastModelCheck } from './model-check.ts';

/** The state of the whole service, which each of its processes reads in the database. */
export type ServiceGauges = { readonly metrics: readonly Gauge[]; read(app: ServiceParts): Promise<void> };

/** The parts of the app that are read. */
export type ServiceParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly engine: Pick<Engine, 'backlog' | 'nodes'>;
  readonly catalog: { readonly current: { readonly settings: Settings } };
};

/** Sums of all accounts are asked for no more often, however many scrape. */
const fresh_ms = 10_000;

/** A scrape waits no longer for the database: Prometheus gives up after 10 s. */
const usual_patience_ms = 3_000;

/** A node that is silent for longer counts as gone. */
const silent_ms_max = 30_000;

/** Opens the gauges of the service. What the database does not tell is left out, and `medley_database_up` is 0. */
export function openServiceGauges({
  elapsed_ms = () => performance.now(),
  patience_ms = usual_patience_ms,
} = {}): ServiceGauges {
  const up = new Gauge('medley_database_up', '1 if PostgreSQL answered the last questions, else 0.', []);
  const gauges = {
    tasks: new Gauge('medley_tasks', 'Tasks that have not ended.', ['status']),
    oldest: new Gauge('medley_task_oldest_queued_seconds', 'Age of the oldest queued task.', []),
    jobs: new Gauge('medley_jobs', 'Jobs of a queue.', ['queue', 'state']),
    oldest_job: new Gauge('medley_job_oldest_seconds', 'How long the oldest job of a queue has been due.', ['queue']),
    deliveries: new Gauge('medley_webhooks_waiting', 'Webhooks that have not been delivered yet.', []),
    open: new Gauge('medley_route_open', '1 for a route whose circuit is open for all accounts.', ['route', 'cause']),
    open_accounts: new Gauge('medley_account_circuits_open', 'Circuits that are open for one account.', []),
    leases: new Gauge('medley_leases', 'Leases that nodes hold of balances and limits.', []),
    low: new Gauge('medley_accounts_below_alert', 'Accounts with less money than the amount of their alert.', []),
    books_ok: new Gauge('medley_books_ok', '1 if the last check of the books found no difference, else 0.', []),
    books_age: new Gauge('medley_books_age_seconds', 'Time since the last check of the books began.', []),
    backup_age: new Gauge(
      'medley_backup_age_seconds',
      'Time since the last scheduled backup that succeeded began.',
      [],
    ),
    backup_late: new Gauge(
      'medley_backup_late',
      '1 if two scheduled backups are missing, or the first ones failed, else 0.',
      [],
    ),
    backup_failures: new Gauge(
      'medley_backup_failures',
      'Scheduled backups that failed since the last one that succeeded.',
      [],
    ),
    ...listGauges(),
    nodes: new Gauge('medley_nodes', 'Processes of the service that are alive.', ['role']),
  };
  let read_at_ms = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const ask = async (app: ServiceParts): Promise<void> => {
    const facts = await readFacts(app);
    for (const gauge of Object.values(gauges)) gauge.clear();
    show(gauges, facts, app.clock.now());
  };
  const read = async (app: ServiceParts): Promise<void> => {
    if (elapsed_ms() - read_at_ms < fresh_ms) return;
    reading ??= ask(app)
      .then(
        () => up.set({}, 1),
        () => {
          up.set({}, 0);
          for (const gauge of Object.values(gauges)) gauge.clear();
        },
      )
      .finally(() => {
        read_at_ms = elapsed_ms();
        reading = undefined;
      });
    const { promise: late, resolve } = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => resolve('late'), patience_ms);
    const first = await Promise.race([reading, late]);
    clearTimeout(timer);
    if (first !== 'late') return;
    up.set({}, 0);
    for (const gauge of Object.values(gauges)) gauge.clear();
  };
  return { metrics: [up, ...Object.values(gauges)], read };
}

/** Gauges of the daily check of models. */
function listGauges() {
  return {
    lists_differ: new Gauge(
      'medley_model_list_differences',
      'Differences between models and lists of others at the last daily check, at most 100.',
      [],
    ),
    lists_unread: new Gauge(
      'medley_model_lists_unread',
      'Lists of models that could not be read at the last daily check.',
      [],
    ),
  };
}

type Gauges = Record<
  | 'tasks'
  | 'oldest'
  | 'jobs'
  | 'oldest_job'
  | 'deliveries'
  | 'open'
  | 'open_accounts'
  | 'leases'
  | 'low'
  | 'books_ok'
  | 'books_age'
  | 'backup_age'
  | 'backup_late'
  | 'backup_failures'
  | 'lists_differ'
  | 'lists_unread'
  | 'nodes',
  Gauge
>;

async function readFacts({ db, clock, engine, catalog }: ServiceParts) {
  const { settings } = catalog.current;
  const [tasks, queues, deliveries, circuits, leases, low, books, nodes, backups, lists] = await Promise.all([
    unfinishedTasks(db),
    engine.backlog(),
    countWaiting(db),
    openRoutes(db, new Date(clock.now())),
    countLeases(db),
    countLowBalances(db),
    lastCheck(db),
    engine.nodes(),
    backupHealth(db, settings, clock.now()),
    settings.model_check ? lastModelCheck(db) : undefined,
  ]);
  return { tasks, queues, deliveries, circuits, leases, low, books, nodes, backups, lists };
}

function show(gauges: Gauges, facts: Awaited<ReturnType<typeof readFacts>>, now_ms: number): void {
  const { tasks, queues, circuits, books, nodes, backups, lists } = facts;
  const seconds = (from: Date) => Math.max(0, (now_ms - from.getTime()) / 1000);
  gauges.tasks.set({ status: 'queued' }, tasks.queued);
  gauges.tasks.set({ status: 'running' }, tasks.running);
  gauges.oldest.set({}, tasks.oldest_queued_at ? seconds(tasks.oldest_queued_at) : 0);
  for (const { name: queue, waiting, deferred, active, oldest_s } of queues) {
    gauges.jobs.set({ queue, state: 'waiting' }, waiting);
    gauges.jobs.set({ queue, state: 'deferred' }, deferred);
    gauges.jobs.set({ queue, state: 'active' }, active);
    gauges.oldest_job.set({ queue }, oldest_s ?? 0);
  }
  gauges.deliveries.set({}, facts.deliveries);
  const for_all = circuits.filter(({ account_id }) => account_id === null);
  for (const { route, cause } of for_all) gauges.open.set({ route, cause }, 1);
  gauges.open_accounts.set({}, circuits.length - for_all.length);
  gauges.leases.set({}, facts.leases);
  gauges.low.set({}, facts.low);
  if (books) {
    gauges.books_ok.set({}, books.ok ? 1 : 0);
    gauges.books_age.set({}, seconds(books.started_at));
  }
  if (backups) {
    if (backups.last) gauges.backup_age.set({}, seconds(backups.last.started_at));
    gauges.backup_late.set({}, backups.is_late ? 1 : 0);
    gauges.backup_failures.set({}, backups.failures);
  }
  if (lists) {
    gauges.lists_differ.set({}, Math.min(lists.differences.length, 100));
    gauges.lists_unread.set({}, Math.min(lists.unread.length, 100));
  }
  for (const { role, silent_ms } of nodes) if (silent_ms <= silent_ms_max) gauges.nodes.add({ role });
}
