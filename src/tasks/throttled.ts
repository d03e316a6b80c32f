import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Model, ProviderLimits } from '../catalog/model.ts';
import { startableRoutes } from '../catalog/overrides.ts';
import type { Db } from '../db/database.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { Clock } from '../lib/clock.ts';
import type { NotStarted } from '../providers/provider.ts';
import type { Engine } from '../queue/queue.ts';
import type { TaskRef } from './task.ts';

/**
 * Tasks that wait until a provider has room for their run. They hold no job and no slot: PostgreSQL counts the runs of
 * each provider, and reserves the next ones in turn (sql/functions/tasks/promote_tasks.sql).
 */

/** Tasks that wait for a provider, on all nodes. */
export type Throttle = {
  /** A run has ended, or a task waits: sends jobs of tasks that have room now. Never throws, waits for nothing. */
  promoteSoon(): void;
  /** The same at once, for all providers. Returns how many tasks got a run. */
  promote(): Promise<number>;
  /** Counts the tasks of an account that wait, as they were at most a second ago. */
  countWaiting(account_id: string): Promise<number>;
};

type Parts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly engine: Pick<Engine, 'wake'>;
  readonly log: Logger;
  track(work: Promise<unknown>): void;
};

/** Runs that end together are one look. */
const gather_ms = 10;

const counts_age_max_ms = 1_000;

/** Makes the part of a node. */
export function makeThrottle(parts: Parts): Throttle {
  let is_due = false;
  let counts = new Map<string, number>();
  let read_at_ms = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  const promoteQuietly = () =>
    promoteAll(parts).catch((error: unknown) => {
      parts.log.debug({ error: String(error) }, 'waiting tasks are promoted a second later');
    });
  const read = async () => {
    counts = await countAll(parts.db);
    read_at_ms = performance.now();
  };
  return {
    promoteSoon: () => {
      if (is_due) return;
      is_due = true;
      setTimeout(() => {
        is_due = false;
        parts.track(promoteQuietly());
      }, gather_ms).unref();
    },
    promote: () => promoteAll(parts),
    countWaiting: async (account_id) => {
      if (performance.now() - read_at_ms >= counts_age_max_ms)
        await (reading ??= read().finally(() => (reading = undefined)));
      return counts.get(account_id) ?? 0;
    },
  };
}

async function countAll(db: Db): Promise<Map<string, number>> {
  const rows = await db.query<{ account_id: string; count: bigint }>(
    'select account_id, count(distinct task_id) as count from throttled_tasks where promoted_at is null group by account_id',
  );
  return new Map(rows.map(({ account_id, count }) => [account_id, Number(count)]));
}

async function promoteAll({ db, clock, catalog, engine }: Parts): Promise<number> {
  const { providers } = catalog.current;
  const waited_for = await db.query<{ provider: string }>(
    `select p.provider from unnest($1::text[]) as p (provider)
      where exists (select from throttled_tasks k where k.provider = p.provider and k.promoted_at is null)`,
    [[...providers.keys()]],
  );
  let promoted = 0;
  for (const { provider } of waited_for) {
    const values = [new Date(clock.now()), provider, limitsText(providers.get(provider))];
    const [row] = await db.query<{ promoted: number }>('select promote_tasks($1, $2, $3) as promoted', values);
    promoted += row?.promoted ?? 0;
  }
  if (promoted > 0) engine.wake('task.start');
  return promoted;
}

/** The limits of a provider as the functions take them. */
export function limitsText(limits: ProviderLimits = {}): string {
  return JSON.stringify({ max_active: limits.max_active, per_minute: limits.per_minute });
}

/** A route that has no room now. */
export type FullRoute = { route: string; provider: string };

/** Lets the task wait for one of these routes. False if it is final by now, or at work. */
export async function throttleTask(
  db: Db,
  ref: TaskRef,
  routes: readonly FullRoute[],
  give_up_at: Date,
): Promise<boolean> {
  const values = [ref.account_id, ref.task_id, JSON.stringify(routes), give_up_at];
  const rows = await retryWhileUnavailable(() =>
    db.query<{ applied: boolean }>('select throttle_task($1, $2, $3, $4) as applied', values),
  );
  return rows[0]?.applied === true;
}

/** Returns the time until which a task waits for its start: the longest start timeout of the model's routes. */
export function giveUpAt(model: Model, created_at: Date): Date {
  const start_ms = Math.max(...startableRoutes(model).map((route) => route.timeout_ms.start));
  return new Date(created_at.getTime() + start_ms);
}

/**
 * Tells whether the upstream is only full: the task may start there later. What the operator's credit or plan does not
 * allow is none of this, nor what a sandbox directive asks for.
 */
export function isFull({ reason, wait_basis, simulated }: NotStarted): boolean {
  return !simulated && (reason === 'rate_limited' || (reason === 'unavailable' && wait_basis === 'requested'));
}

/** The reason of an attempt that a full upstream refused: its route is tried again. */
export const full_reason = 'full';

/** Tells all nodes that the upstream of a route is full, and until when. */
export async function noteFullRoute(
  { db, clock }: { db: Db; clock: Clock },
  { route, provider }: FullRoute,
  { retry_after_ms, wait_basis }: NotStarted,
): Promise<void> {
  const wait_ms = wait_basis === 'guess' ? null : (retry_after_ms ?? null);
  const is_firm = wait_ms !== null && wait_basis === 'requested';
  const values = [new Date(clock.now()), route, provider, wait_ms, is_firm];
  await retryWhileUnavailable(() => db.query('select note_full_route($1, $2, $3, $4, $5)', values));
}

/** Tasks that have waited for too long. */
export async function listGivenUp(db: Db, now: Date, limit: number): Promise<TaskRef[]> {
  return db.query<TaskRef>(
    `select distinct account_id, task_id from throttled_tasks where give_up_at <= $1 and promoted_at is null limit $2`,
    [now, limit],
  );
}
