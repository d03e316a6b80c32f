import type pg from 'pg';
import { PgBoss, type Db as BossDb } from 'pg-boss';
import { withConnection, type Db } from '../db/database.ts';
import { openPool } from '../db/pool.ts';
import type { ThrottledLog } from './throttled-log.ts';
import type { Claim, JobData } from './job.ts';

export type QueueOptions = {
  name: string;
  /** A job whose worker has not been heard of for this long runs elsewhere. 10 is pg-boss's least. */
  heartbeat_s?: number;
  /** `exclusive`: at most one live job per key. */
  policy?: 'standard' | 'exclusive';
};

/**
 * Intervals at which pg-boss looks for jobs of dead workers. Measured worst case from `kill -9` to the new
 * start: heartbeat 10 s + supervise 1 s + monitor 2 s + poll 0.5 s.
 */
export type Supervision = { supervise_s: number; monitor_s: number };

/** pg-boss as the rest of this module sees it; the only file that knows its interface. */
export type JobQueue = {
  /** Statements of the engine: its own connections, ended after 5 s without an answer. */
  query<T>(text: string, values: readonly unknown[]): Promise<T[]>;
  /** Makes the queue, or brings the settings of an existing one up to date. */
  makeQueue(options: QueueOptions): Promise<void>;
  /** Claims up to `count` jobs that are due, the oldest first. */
  fetch(queue: string, count: number): Promise<Claim[]>;
  /** Deletes finished jobs; those that belong to somebody else by now stay. */
  remove(queue: string, claims: readonly { id: string; retry_count: number }[]): Promise<void>;
  stop(): Promise<void>;
};

/**
 * The engine has its own few connections, so that heartbeats never wait behind a full main pool, and
 * two more for pg-boss's upkeep, so that fetches never wait behind that.
 */
const connections_max = 4;
const upkeep_connections_max = 2;
const query_limit_ms = 5_000;

/** It deletes what is finished, 10,000 at once; and it looks for the jobs of dead workers, which cannot wait for long. */
const upkeep_limit_ms = 10_000;

const upkeep_settings = 'set synchronous_commit = off';

/**
 * Settings of the connections that fetch and settle.
 * - They commit without waiting for the disk: after a crash of the server the last claims and
 *   outcomes (< 0.6 s) may be forgotten and those jobs run again, which handlers must bear anyway.
 *   Sends are part of the caller's transaction and as durable as it.
 * - Their plans do not depend on statistics, which are always wrong for a table that fills and
 *   empties in seconds: with 30,000 jobs and none, a fetch sorted the whole queue (12 ms, now 1 ms).
 */
const session_settings =
  'set synchronous_commit = off; set enable_sort = off; set enable_seqscan = off; set enable_bitmapscan = off; set jit = off';

/**
 * Our jobs have no group, so the limit per group limits nothing; but with it pg-boss claims by a list
 * of ids, and without it by a join, which stale statistics turn into 64 passes over the whole queue:
 * a fetch out of 40,000 jobs took 600 ms, and takes 1 ms this way. The list is of no order, and only
 * the metadata tell which job is the oldest; they cost 12 µs a job.
 */
const fetch_options = { groupConcurrency: 1, includeMetadata: true } as const;

/** Any number will do, as long as it is ours: two starting processes wait for each other on it. */
const advisory_lock = 7_633_529_002;

const ten_years_s = 315_360_000;

/** Starts pg-boss: makes or upgrades its schema and all queues, one process at a time. */
export async function startJobQueue(
  db: Db,
  queues: readonly QueueOptions[],
  supervision: Supervision,
  log: ThrottledLog,
): Promise<JobQueue> {
  const pool = openEnginePool(db, log, connections_max, query_limit_ms, session_settings);
  const upkeep = openEnginePool(db, log, upkeep_connections_max, upkeep_limit_ms, upkeep_settings);
  const pg_boss = makePgBoss(upkeep, supervision, log);
  const stop = async () => {
    await pg_boss.stop({ graceful: false, close: false });
    await Promise.all([pool.end(), upkeep.end()]);
  };
  try {
    await withLock(db, async () => {
      await pg_boss.start();
      for (const queue of queues) await makeQueue(pg_boss, queue);
    });
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
  const limited: BossDb = { executeSql: (text, values) => pool.query(text, values) };
  return {
    query: async <T>(text: string, values: readonly unknown[]) => (await pool.query(text, [...values])).rows as T[],
    makeQueue: (options) => makeQueue(pg_boss, options),
    fetch: async (queue, count) => {
      const jobs = await pg_boss.fetch<JobData>(queue, { ...fetch_options, batchSize: count, db: limited });
      return jobs.toSorted((one, other) => one.createdOn.getTime() - other.createdOn.getTime()).map(asClaim);
    },
    remove: async (queue, claims) => {
      const jobs = claims.map((claim) => ({ id: claim.id, retryCount: claim.retry_count }));
      await pg_boss.deleteJob(queue, jobs, { db: limited });
    },
    stop,
  };
}

function openEnginePool(db: Db, log: ThrottledLog, max: number, limit_ms: number, settings: string): pg.Pool {
  return openPool({
    connection: db.connection,
    connections_max: max,
    name: 'medley engine',
    limit_ms,
    settings,
    onError: (error) => log.error('a connection was lost', error),
  });
}

function makePgBoss(pool: pg.Pool, supervision: Supervision, log: ThrottledLog): PgBoss {
  const pg_boss = new PgBoss({
    db: { executeSql: (text, values) => pool.query(text, values) },
    schedule: false, // cron knows minutes only; the engine has a schedule of its own
    superviseIntervalSeconds: supervision.supervise_s,
    monitorIntervalSeconds: supervision.monitor_s,
    maintenanceIntervalSeconds: 10, // deletes what is finished; the default is once a day
    flowIntervalSeconds: 3_600, // dependencies between jobs are not used
    warningQueueSize: 1_000_000, // 10,000 deferred polls are a normal day, not a backlog
  });
  pg_boss.on('error', (error) => {
    if (!pool.ending) log.error('pg-boss failed', error);
  });
  pg_boss.on('warning', (warning) => log.warn(warning.message, { data: warning.data }));
  return pg_boss;
}

async function withLock(db: Db, work: () => Promise<void>): Promise<void> {
  await withConnection(db, async (client) => {
    await client.query('select pg_advisory_lock($1)', [advisory_lock]);
    await work();
  });
}

/**
 * Each number here answers a default that loses or delays work: 2 retries, retries at most after
 * 15 minutes of running, deletion of jobs that wait for 14 days, finished jobs kept for 7 days.
 * The back-off after a throw is ours (settlements.ts), so that a dead worker's job starts at once.
 */
async function makeQueue(pg_boss: PgBoss, queue: QueueOptions): Promise<void> {
  const settings = {
    retryLimit: 2_000_000_000,
    retryDelay: 0,
    retryBackoff: false,
    expireInSeconds: 86_400,
    retentionSeconds: ten_years_s,
    deleteAfterSeconds: 60,
    heartbeatSeconds: queue.heartbeat_s ?? 10,
    notify: false, // pg_notify inside a money transaction serialises commits; see Engine.wake
  };
  await pg_boss.createQueue(queue.name, { ...settings, policy: queue.policy ?? 'standard' });
  await pg_boss.updateQueue(queue.name, settings);
}

function asClaim(job: { id: string; retryCount: number; heartbeatSeconds: number | null; data: JobData }): Claim {
  return { id: job.id, retry_count: job.retryCount, heartbeat_s: job.heartbeatSeconds ?? 10, data: job.data };
}
