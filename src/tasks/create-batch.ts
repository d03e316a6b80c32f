import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { makeBatcher, type Batcher } from '../db/batcher.ts';
import { oneRow } from '../db/one-row.ts';
import { recordText } from '../db/record.ts';
import type { Clock } from '../lib/clock.ts';
import { whileLeased } from '../leases/while-leased.ts';
import { lockedBy } from '../money/locked.ts';
import type { Money } from '../money/money.ts';
import { loadTask } from './task.ts';

/** The parts of the app that inserting a task takes. */
export type InsertParts = { readonly db: Db; readonly inserter: Inserter };

/** A task as insert_task and insert_tasks take it: the columns of its row. */
export type NewTask = {
  account_id: string;
  key_id: string;
  id: string;
  model: string;
  kind: string;
  input: string;
  metadata: string;
  webhook_url: string | null;
  traceparent: string | null;
  currency: string;
  pricing: object;
  held_units: object;
  estimate: Money;
  created_at: Date;
  deadline_at: Date;
};

/**
 * The header Idempotency-Key, and the hash of the body that came with it. `key`: the name under which it is stored. Keys that
 * share a budget, as those of a rotation do, find what they have stored under the other two, too.
 */
export type KeyOnce = { key: string; shared_key: string; account_key: string; body_hash: Buffer };

/** `exists` and `leased` never leave this file: see isOurs and whileLeased. */
export type CreateAnswer = {
  outcome:
    | 'created'
    | 'replayed'
    | 'mismatched'
    | 'in_flight'
    | 'paused'
    | 'insufficient'
    | 'over_limit'
    | 'leased'
    | 'exists';
  task_id: string | null;
  retry_after: number | null;
  available: Money | null;
  remaining: Money | null;
};

/** A batch is written, parsed and stored as a whole: nobody's small task waits for 20 MB of another's. */
const batched_length_max = 32_768;

/**
 * Holds the money, writes the task and sends its job, or nothing of it; one call of the database for all
 * that is being created at this moment. Repeated when the answer was lost: the id is the caller's, so
 * nothing happens twice. Rejects when the database cannot be reached.
 *
 * What has an Idempotency-Key goes alone: the lock on its key tells two calls apart, but not two members
 * of one call.
 */
export async function insertTask(parts: InsertParts, task: NewTask, once?: KeyOnce): Promise<CreateAnswer> {
  const goes_alone = once !== undefined || task.input.length > batched_length_max;
  const { together, alone } = parts.inserter;
  const insert = () => (goes_alone ? alone({ task, once }) : together({ task, once }));
  const last = await whileLeased(insert);
  // What is leased for longer than leases last is not there.
  const answer: CreateAnswer = last.outcome === 'leased' ? { ...last, outcome: 'insufficient' } : last;
  return (await isOurs(parts.db, task, answer)) ? { ...answer, outcome: 'created' } : answer;
}

/**
 * Returns true if an earlier try of this very call has created the task, and its answer was lost. In between the
 * failures pause may have begun, which is looked at before the hold.
 */
async function isOurs(db: Db, task: NewTask, answer: CreateAnswer): Promise<boolean> {
  switch (answer.outcome) {
    case 'exists':
      return true;
    case 'replayed':
      return answer.task_id === task.id;
    case 'paused':
      return (await loadTask(db, { account_id: task.account_id, task_id: task.id })) !== undefined;
    default:
      return false;
  }
}

type Insert = { task: NewTask; once: KeyOnce | undefined };
type Inserts = Batcher<Insert, CreateAnswer>;

/** Writes new tasks into the database. */
export type Inserter = { readonly together: Inserts; readonly alone: Inserts };

type InserterParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/** Each call has a connection. */
const calls_max = 3;

/** Makes the batches: one for small tasks, one for those that go alone. */
export function makeInserter(parts: InserterParts): Inserter {
  const options = {
    together: (inserts: readonly Insert[]) =>
      callTogether(
        parts,
        inserts.map(({ task }) => task),
      ),
    // For one task it takes half of the server's time: 0.7 ms, not 1.3.
    alone: ({ task, once }: Insert) => callAlone(parts, task, once),
    groups: lockedBy(parts.db, ({ task }: Insert) => task.account_id),
    calls_max,
  };
  return {
    together: makeBatcher<Insert, CreateAnswer>(options),
    alone: makeBatcher<Insert, CreateAnswer>({ ...options, batch_max: 1, slow_ms: 0 }),
  };
}

async function callAlone(
  { db, catalog }: InserterParts,
  { input, ...task }: NewTask,
  once?: KeyOnce,
): Promise<CreateAnswer> {
  const rows = await db.query<CreateAnswer>(
    'select * from insert_task($1, $2, $3, $4)',
    [recordText(task), input, catalog.current.settings.limits.failed_per_24h, once ? onceText(once) : null],
    'brief',
  );
  return oneRow(rows);
}

/** Returns an Idempotency-Key as insert_task and find_repeated take it. */
export function onceText({ body_hash, ...names }: KeyOnce): string {
  return recordText({ ...names, body_hash: `\\x${body_hash.toString('hex')}` });
}

/** The answer of insert_tasks: member i's answer is at i. Numbers come as text, which pg gives as it is. */
type BatchRow = {
  outcome: CreateAnswer['outcome'][];
  retry_after: (number | null)[];
  available: (string | null)[];
  remaining: (string | null)[];
};

async function callTogether({ db, clock, catalog }: InserterParts, tasks: readonly NewTask[]): Promise<CreateAnswer[]> {
  const rows = await db.query<BatchRow>(
    'select outcome, retry_after, available::text[], remaining::text[] from insert_tasks($1, $2, $3)',
    [new Date(clock.now()), recordText(tasks), catalog.current.settings.limits.failed_per_24h],
    'brief',
  );
  const answer = oneRow(rows);
  return answer.outcome.map((outcome, i) => ({
    outcome,
    task_id: null,
    retry_after: answer.retry_after[i] ?? null,
    available: moneyOf(answer.available[i]),
    remaining: moneyOf(answer.remaining[i]),
  }));
}

function moneyOf(text: string | null | undefined): Money | null {
  return text === null || text === undefined ? null : BigInt(text);
}
