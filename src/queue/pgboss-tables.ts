import type pg from 'pg';
import type { Queryable } from '../db/database.ts';
import type { JobQueue } from './pg-boss.ts';
import type { JobData, Settlement } from './job.ts';

// All SQL of the service on pg-boss's tables where its own verbs do not reach, beside the functions in plpgsql that send
// a job within another statement (engine_send, engine_send_many, engine_live_keys, and those that read its clock).

/**
 * Parts of pg-boss's schema that we rely on, here and in those functions. test/queue/pgboss-tables.test.ts
 * compares them with the schema of the installed version, test/queue/send.test.ts the row that we write with
 * its own.
 */
export const relied_on = {
  columns: {
    job: {
      id: 'uuid',
      name: 'text',
      data: 'jsonb',
      output: 'jsonb',
      policy: 'text',
      dead_letter: 'text',
      state: 'job_state',
      blocked: 'boolean',
      blocking: 'boolean',
      pending_dependencies: 'integer',
      priority: 'integer',
      singleton_key: 'text',
      singleton_on: 'timestamp without time zone',
      group_id: 'text',
      group_tier: 'text',
      created_on: 'timestamp with time zone',
      start_after: 'timestamp with time zone',
      started_on: 'timestamp with time zone',
      keep_until: 'timestamp with time zone',
      heartbeat_on: 'timestamp with time zone',
      heartbeat_seconds: 'integer',
      expire_seconds: 'integer',
      deletion_seconds: 'integer',
      retry_count: 'integer',
      retry_limit: 'integer',
      retry_delay: 'integer',
      retry_delay_max: 'integer',
      retry_backoff: 'boolean',
    },
    queue: {
      name: 'text',
      policy: 'text',
      dead_letter: 'text',
      heartbeat_seconds: 'integer',
      expire_seconds: 'integer',
      retention_seconds: 'integer',
      deletion_seconds: 'integer',
      retry_limit: 'integer',
      retry_delay: 'integer',
      retry_delay_max: 'integer',
      retry_backoff: 'boolean',
    },
    version: { version: 'integer' },
  },
  /** In their order, which statements compare by. */
  states: ['created', 'retry', 'active', 'completed', 'cancelled', 'failed'],
  /** The clock of all its statements. */
  functions: ['job_now() timestamp with time zone'],
  /** One id names one job; one live job per key of an exclusive queue; what is due is found at once. */
  indexes: [
    'UNIQUE (name, id)',
    "UNIQUE (name, COALESCE(singleton_key, '')) WHERE ((state <= 'active') AND (policy = 'exclusive'))",
    "(name, priority DESC, created_on, start_after) WHERE ((state < 'active') AND (NOT blocked))",
  ],
} as const;

export type SendOptions = {
  /** Not before this much time has passed, by the database's clock. */
  after_ms?: number;
  /** Not before this time. */
  at?: Date;
  /** Names the thing the job works for, so that `liveKeys` can tell whether it still has a job. */
  key?: string;
};

/**
 * Inserts the job within the caller's transaction. `after_ms` counts from the statement, not from
 * the transaction's begin, and by the database's clock: never early, whatever the node's clock says.
 */
export async function insertJob(
  tx: Queryable,
  queue: string,
  data: JobData,
  options: SendOptions,
): Promise<string | undefined> {
  const rows = await tx.query<{ id: string | null }>(
    `select engine_send($1, $2::jsonb,
       coalesce($3::timestamptz, clock_timestamp() + $4::float8 * interval '1 millisecond'), $5) as id`,
    [queue, JSON.stringify(data), options.at ?? null, options.after_ms ?? null, options.key ?? null],
  );
  return rows[0]?.id ?? undefined;
}

/** Returns false in a database that no service has used yet. */
export async function isEngineCreated(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_there: boolean }>(`select to_regclass('pgboss.job') is not null as is_there`);
  return row?.is_there === true;
}

/** For the statements of later modules: a row set with the `key` of every job that is not over. */
export const live_keys = 'engine_live_keys()';

/** Returns those of `keys` that have a job waiting, deferred or running. */
export async function liveKeys(db: Queryable, keys: readonly string[]): Promise<Set<string>> {
  const rows = await db.query<{ key: string }>('select key from engine_live_keys() where key = any($1::text[])', [
    keys,
  ]);
  return new Set(rows.map((row) => row.key));
}

/**
 * Makes the waiting jobs of these keys due, in the order of their age, the deferred ones too.
 * One pass over the jobs of the queue: 10,000 take 5 ms.
 */
export async function bringForward(db: Queryable, queue: string, keys: readonly string[]): Promise<Set<string>> {
  const rows = await db.query<{ key: string }>(
    `update pgboss.job set start_after = least(start_after, pgboss.job_now()), priority = 0
      where name = $1 and singleton_key = any($2::text[]) and state < 'active'
        and (start_after > pgboss.job_now() or priority < 0)
      returning singleton_key as key`,
    [queue, keys],
  );
  return new Set(rows.map((row) => row.key));
}

/** Makes all deferred jobs due. They come after all others, and 30,000 take 0.35 s. */
export async function promoteDeferred(job_queue: JobQueue, queue: string): Promise<void> {
  await job_queue.query(
    `update pgboss.job set start_after = pgboss.job_now()
      where name = $1 and priority < 0 and state < 'active' and not blocked and start_after > pgboss.job_now()`,
    [queue],
  );
}

/**
 * Returns those of `queues` that have a job due: one statement for all, instead of one empty fetch each. The index
 * that it uses (pg-boss's job_i11) answers for a queue of 10,000 deferred jobs in 1 ms.
 */
export async function dueQueues(job_queue: JobQueue, queues: readonly string[]): Promise<string[]> {
  const rows = await job_queue.query<{ name: string }>(
    `select q.name from unnest($1::text[]) as q (name), lateral (
       select from pgboss.job j
       where j.name = q.name and j.state < 'active' and not j.blocked and j.start_after <= pgboss.job_now()
       limit 1) as due`,
    [queues],
  );
  return rows.map((row) => row.name);
}

export type ClaimName = { queue: string; id: string; retry_count: number };

/** A job may be claimed a second time while the first handler still runs: only both parts name a claim. */
export function claimKey(claim: { id: string; retry_count: number }): string {
  return `${claim.id}:${claim.retry_count}`;
}

/** Says that these claims are alive; answers the keys of those that still are ours. */
export async function touchClaims(job_queue: JobQueue, claims: readonly ClaimName[]): Promise<Set<string>> {
  const rows = await job_queue.query<{ key: string }>(
    `update pgboss.job set heartbeat_on = pgboss.job_now()
     where name = any($1::text[]) and id = any($2::uuid[]) and state = 'active'
       and (id::text || ':' || retry_count::text) = any($3::text[])
     returning id::text || ':' || retry_count::text as key`,
    [[...new Set(claims.map((claim) => claim.queue))], claims.map((claim) => claim.id), claims.map(claimKey)],
  );
  return new Set(rows.map((row) => row.key));
}

export type Deferral = {
  id: string;
  retry_count: number;
  fate: Exclude<Settlement['fate'], 'done'>;
  delay_ms: number;
  output: { message: string } | null;
};

/**
 * Gives claimed jobs back to their queue, to start again after their delay: the same row, where
 * completing and sending anew would take two statements and leave a dead row per poll.
 * `failed` counts as an attempt. The others do not, so they get a new id: without one, a worker that
 * lost the job long ago could mistake a later claim with the same count for its own.
 * Deferred jobs come after all others: jobs are fetched in the order of their age, and of 30,000
 * that had no slot there was always one due that was older than another account's new job.
 */
export async function deferClaims(job_queue: JobQueue, queue: string, items: readonly Deferral[]): Promise<void> {
  await job_queue.query(
    `update pgboss.job j set
       id = case i.fate when 'failed' then j.id else gen_random_uuid() end,
       state = (case i.fate when 'failed' then 'retry' else 'created' end)::pgboss.job_state,
       retry_count = case i.fate when 'again' then 0 else j.retry_count end,
       priority = case i.fate when 'deferred' then -1 else 0 end,
       started_on = case i.fate when 'failed' then j.started_on end,
       heartbeat_on = null,
       start_after = pgboss.job_now() + i.delay_ms * interval '1 millisecond',
       keep_until = pgboss.job_now() + i.delay_ms * interval '1 millisecond' + (j.keep_until - j.start_after),
       output = case i.fate when 'deferred' then j.output else i.output end
     from jsonb_to_recordset($2::jsonb) as i (id uuid, retry_count int, fate text, delay_ms float8, output jsonb)
     where j.name = $1 and j.id = i.id and j.state = 'active' and j.retry_count = i.retry_count
       and j.id = any($3::uuid[]) -- for the planner: by the primary key, whatever the statistics say`,
    [queue, JSON.stringify(items), items.map((item) => item.id)],
  );
}

/** Inserts a scheduled job if it is not there; a shorter period than the one that it waits for pulls it forward. */
export async function insertScheduledJob(job_queue: JobQueue, queue: string, every_ms: number): Promise<void> {
  await job_queue.query(`select engine_send($1, '{}'::jsonb, null, $1)`, [queue]);
  await job_queue.query(
    `update pgboss.job set start_after = pgboss.job_now() + $2::float8 * interval '1 millisecond'
     where name = $1 and state = 'created' and start_after > pgboss.job_now() + $2::float8 * interval '1 millisecond'`,
    [queue, every_ms],
  );
}

/** Jobs of one queue: due ones that wait, those that run, and how long the oldest due one has waited. */
export type Backlog = { name: string; waiting: number; deferred: number; active: number; oldest_s: number | null };

/** Returns the backlog of each queue. */
export async function backlogOf(db: Queryable): Promise<Backlog[]> {
  const rows = await db.query<{
    name: string;
    waiting: bigint;
    deferred: bigint;
    active: bigint;
    oldest_s: number | null;
  }>(
    `select name, count(*) filter (where state < 'active' and start_after <= pgboss.job_now()) as waiting,
            count(*) filter (where state < 'active' and start_after > pgboss.job_now()) as deferred,
            count(*) filter (where state = 'active') as active,
            extract(epoch from pgboss.job_now() - min(start_after)
              filter (where state < 'active' and start_after <= pgboss.job_now()))::float8 as oldest_s
       from pgboss.job where state <= 'active' group by name order by name`,
  );
  return rows.map(({ name, waiting, deferred, active, oldest_s }) => ({
    name,
    waiting: Number(waiting),
    deferred: Number(deferred),
    active: Number(active),
    oldest_s: oldest_s === null ? null : Math.round(oldest_s),
  }));
}

/** A job that may need a person: it was begun in vain, runs for long, or is due for long and nobody takes it. */
export type TroubledJob = {
  id: string;
  queue: string;
  /** The task, delivery or other thing it is for. */
  key: string | null;
  state: 'running' | 'waiting' | 'later';
  /** Number of starts without an outcome. */
  attempts: number;
  /** Since when it runs, or was last begun. */
  started_at: Date | null;
  due_at: Date;
  /** Reason of the last failure. */
  reason: string | null;
};

const runs_long = '3 minutes';
const waits_long = '1 minute';

/** Jobs that may need a person, those that were due first at the top. Upkeep is none of them. */
export async function troubledJobs(db: Queryable): Promise<TroubledJob[]> {
  return db.query<TroubledJob>(
    `select id, name as queue, coalesce(singleton_key, data ->> 'task_id', data ->> 'delivery_id') as key,
            case when state = 'active' then 'running' when start_after <= pgboss.job_now() then 'waiting' else 'later'
              end as state,
            retry_count as attempts, started_on as started_at, start_after as due_at, output ->> 'message' as reason
       from pgboss.job
      where state <= 'active' and name not like 'duty.%'
        and (retry_count > 0 or (state = 'active' and started_on < pgboss.job_now() - $1::interval)
             or (state < 'active' and start_after < pgboss.job_now() - $2::interval))
      order by start_after, id limit 100`,
    [runs_long, waits_long],
  );
}

/**
 * Gives a job back to its queue, to start at once as if it had never been begun. Whoever holds it loses it at
 * its next heartbeat: its id is another then. Answers the queue, or undefined if the job is over.
 */
export async function takeAway(db: Queryable, id: string): Promise<string | undefined> {
  const rows = await db.query<{ name: string }>(
    `update pgboss.job set id = gen_random_uuid(), state = 'created', retry_count = 0, started_on = null,
       heartbeat_on = null, start_after = pgboss.job_now(), output = null
      where id = $1::uuid and state <= 'active' and name not like 'duty.%' returning name`,
    [id],
  );
  return rows[0]?.name;
}

/** Tables in a backup: the queues, and the jobs that are not over. pg-boss makes the rest anew. */
export const preserved_tables: readonly string[] = ['pgboss.queue', 'pgboss.job'];

/** The version of pg-boss's tables; null if there are none. */
export async function engineVersion(client: pg.Client): Promise<number | null> {
  const { rows: existing } = await client.query<{ is_there: boolean }>(
    `select to_regclass('pgboss.version') is not null as is_there`,
  );
  if (!existing[0]?.is_there) return null;
  const { rows } = await client.query<{ version: number }>('select version from pgboss.version');
  return rows[0]?.version ?? null;
}
