import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { SemaphoreState } from '../concurrency/semaphore.ts';
import type { Db } from '../db/database.ts';
import { Gauge } from '../metrics/registry.ts';
import type { Journal } from '../storage/journal.ts';

/** The state of this process at a scrape. */
export type ProcessGauges = { readonly metrics: readonly Gauge[]; read(app: ProcessParts): void; close(): void };

/** The parts of the app that are read. */
export type ProcessParts = {
  readonly db: Pick<Db, 'connections'>;
  readonly limits: { readonly [name: string]: { readonly state: SemaphoreState } };
  readonly holds: { oldest_ms(): number };
  readonly journal: Pick<Journal, 'pending'>;
  readonly config: { readonly role: string };
};

/** Steps of the clock that measures delays of the event loop, ms. */
const resolution_ms = 10;

/** Opens the gauges of a process, and begins to measure the delays of its event loop. */
export function openProcessGauges(version: string): ProcessGauges {
  const gauges = {
    info: new Gauge('medley_info', 'The version of this process; the value is 1.', ['version', 'role']),
    started: new Gauge('process_start_time_seconds', 'Start of the process, in seconds since 1970.', []),
    cpu: new Gauge('process_cpu_seconds_total', 'Processor time of the process.', [], 'counter'),
    resident: new Gauge('process_resident_memory_bytes', 'Resident memory of the process.', []),
    heap: new Gauge('medley_heap_bytes', 'JavaScript heap that is in use.', []),
    loop_busy: new Gauge('medley_event_loop_busy_seconds_total', 'Time in which the event loop worked.', [], 'counter'),
    loop_delay: new Gauge('medley_event_loop_delay_seconds', 'Delay of the event loop since the last scrape.', [
      'quantile',
    ]),
    in_use: new Gauge('medley_limit_in_use', 'What is in use of a limit of this process.', ['limit']),
    waiting: new Gauge('medley_limit_waiting', 'Requests that wait for a limit of this process.', ['limit']),
    bound: new Gauge('medley_limit_bound', 'The most that may be in use of a limit.', ['limit']),
    connections: new Gauge('medley_database_connections', 'Connections to PostgreSQL.', ['pool', 'state']),
    statements: new Gauge('medley_database_waiting', 'Statements that wait for a connection.', ['pool']),
    money: new Gauge('medley_money_oldest_seconds', 'How long the oldest call of the money functions has waited.', []),
    journal: new Gauge('medley_journal_entries', 'Ends of calls that wait on the disk for the database.', []),
  };
  const delay = monitorEventLoopDelay({ resolution: resolution_ms });
  delay.enable();
  const read = (parts: ProcessParts): void => {
    const { db, limits, journal, config } = parts;
    const { user, system } = process.cpuUsage();
    const memory = process.memoryUsage();
    gauges.info.set({ version, role: config.role }, 1);
    gauges.started.set({}, performance.timeOrigin / 1000);
    gauges.cpu.set({}, (user + system) / 1e6);
    gauges.resident.set({}, memory.rss);
    gauges.heap.set({}, memory.heapUsed);
    gauges.loop_busy.set({}, performance.eventLoopUtilization().active / 1000);
    for (const quantile of [0.5, 0.99, 1]) {
      const delay_ns = delay.count === 0 ? 0 : delay.percentile(quantile * 100);
      gauges.loop_delay.set({ quantile: String(quantile) }, Math.max(0, delay_ns / 1e9 - resolution_ms / 1000));
    }
    delay.reset();
    for (const limit of Object.values(limits)) {
      const { name, in_use, waiting, bound } = limit.state;
      gauges.in_use.set({ limit: name }, in_use);
      gauges.waiting.set({ limit: name }, waiting);
      if (bound !== null) gauges.bound.set({ limit: name }, bound);
    }
    for (const [pool, { open, idle, waiting }] of Object.entries(db.connections())) {
      gauges.connections.set({ pool, state: 'busy' }, open - idle);
      gauges.connections.set({ pool, state: 'idle' }, idle);
      gauges.statements.set({ pool }, waiting);
    }
    gauges.money.set({}, parts.holds.oldest_ms() / 1000);
    gauges.journal.set({}, journal.pending().length);
  };
  return { metrics: Object.values(gauges), read, close: () => delay.disable() };
}
