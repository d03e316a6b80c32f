import type { Pricing, Units } from '../catalog/price.ts';
import type { Queryable } from '../db/database.ts';
import { assert } from '../lib/assert.ts';
import { newId } from '../lib/ids.ts';
import { costView, estimateView, type Money } from '../money/money.ts';

/** Names a task everywhere inside; the account leads because it will be the distribution key. */
export type TaskRef = { account_id: string; task_id: string };

/** The TaskRef that a job carries. */
export function readRef(data: Record<string, unknown>): TaskRef {
  const { account_id, task_id } = data;
  assert(typeof account_id === 'string' && typeof task_id === 'string', 'a task job names its task');
  return { account_id, task_id };
}

export type TaskStatus = 'queued' | 'running' | 'succeeded' | 'failed';

export type TaskErrorType =
  | 'upstream_error'
  | 'timeout'
  | 'content_policy_violation'
  | 'invalid_request'
  | 'canceled'
  | 'internal_error';

/** One produced file as the caller sees it (docs/media.md). */
export type OutputItem = {
  type: 'image' | 'video' | 'audio' | 'text';
  url: string;
  content_type: string;
  size_bytes: number;
  width?: number;
  height?: number;
  duration?: number;
  /** The text itself, if it is not too long. */
  text?: string;
  expires_at: string;
};

/** A row of `tasks` without its input, which may have 20 MB. `metadata` and `body` are JSON texts. */
export type Task = {
  account_id: string;
  id: string;
  key_id: string;
  model: string;
  kind: 'image' | 'video' | 'audio';
  metadata: string;
  webhook_url: string | null;
  /** The place in a trace at which it was created. */
  traceparent: string | null;
  currency: string;
  pricing: Pricing;
  held_units: Units;
  estimate: Money;
  status: TaskStatus;
  cost: Money;
  error_type: TaskErrorType | null;
  error_message: string | null;
  body: string | null;
  files: StoredFile[];
  files_removed_at: Date | null;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  deadline_at: Date;
};

/** The stored facts of an output file beside its bytes: enough to make a fresh link. */
export type StoredFile = { key: string; item: Omit<OutputItem, 'url' | 'expires_at'> };

export type AttemptState =
  | 'submitting'
  | 'accepted'
  | 'done'
  | 'failed'
  | 'not_started'
  | 'ambiguous'
  | 'canceled'
  /** The task ended without its run: the poll job is to stop it upstream. */
  | 'abandoned';

/** A row of `attempts`: one try of a route. */
export type Attempt = {
  number: number;
  route: string;
  provider: string;
  /** JSON text of the Route as it was at the submit. */
  route_settings: string;
  /** Names the worker's hold on this try; writes under another one are refused. */
  claim: string;
  state: AttemptState;
  reason: string | null;
  message: string | null;
  /** JSON text; null until the upstream accepted. */
  run_ref: string | null;
  created_at: Date;
  ended_at: Date | null;
};

/** The parts of a task that its body is made of. */
export type TaskFacts = Pick<
  Task,
  'id' | 'status' | 'model' | 'currency' | 'cost' | 'estimate' | 'error_type' | 'error_message' | 'metadata'
> & { created_at: Date; started_at: Date | null; completed_at: Date | null; output: OutputItem[] };

/** The JSON text of a task (specification 2.1): every key is always there. */
export function renderTask(task: TaskFacts): string {
  return JSON.stringify({
    id: task.id,
    status: task.status,
    model: task.model,
    output: task.output,
    cost: costView(task.cost, task.currency),
    estimated_cost: estimateView(task.estimate, task.currency),
    error: task.error_type === null ? null : { type: task.error_type, message: task.error_message },
    created_at: task.created_at.toISOString(),
    started_at: task.started_at?.toISOString() ?? null,
    completed_at: task.completed_at?.toISOString() ?? null,
    metadata: JSON.parse(task.metadata),
  });
}

/** Returns the body of GET: the stored bytes of a final task, else its present state. */
export function bodyOf(task: Task): string {
  return task.body ?? renderTask({ ...task, output: [] });
}

/** The columns of a Task. */
export const task_columns = `account_id, id, key_id, model, kind, metadata, webhook_url, traceparent, currency, pricing, held_units, estimate,
  status, cost, error_type, error_message, body, files, files_removed_at, created_at, started_at, completed_at, deadline_at`;

export async function loadTask(db: Queryable, ref: TaskRef): Promise<Task | undefined> {
  const rows = await db.query<Task>(`select ${task_columns} from tasks where account_id = $1 and id = $2`, [
    ref.account_id,
    ref.task_id,
  ]);
  return rows[0];
}

/** Returns SQL that selects the `key_id` of a task. */
export function keyOfTask(account: string, id: string): string {
  return `select key_id from tasks where account_id = ${account} and id = ${id}`;
}

const text_length_max = 2_000;

/** An upstream's words as the database can keep them: not endless, and without NUL. */
export function tidyText(text: string): string {
  return text.slice(0, text_length_max).replaceAll('\0', '');
}

/** The JSON text of a task's input. */
export async function loadInput(db: Queryable, ref: TaskRef): Promise<string> {
  const rows = await db.query<{ input: string }>('select input from tasks where account_id = $1 and id = $2', [
    ref.account_id,
    ref.task_id,
  ]);
  assert(rows[0], 'a task at work is there');
  return rows[0].input;
}

/** The name of a task inside, from its row. */
export function refOf(task: Pick<Task, 'account_id' | 'id'>): TaskRef {
  return { account_id: task.account_id, task_id: task.id };
}

/** All attempts of a task, oldest first. */
export async function listAttempts(db: Queryable, ref: TaskRef): Promise<Attempt[]> {
  return db.query<Attempt>('select * from attempts where account_id = $1 and task_id = $2 order by number', [
    ref.account_id,
    ref.task_id,
  ]);
}

/** A signed test payload's body: a finished task that never was, without output (specification 2.1). */
export function testBody(
  currency: string,
  now: Date,
  error: { type: TaskErrorType; message: string } | null = null,
): string {
  return renderTask({
    id: newId('task', now.getTime()),
    status: error ? 'failed' : 'succeeded',
    model: 'sandbox/image',
    output: [],
    currency,
    cost: 0n,
    estimate: 0n,
    error_type: error?.type ?? null,
    error_message: error?.message ?? null,
    metadata: '{"test":"true"}',
    created_at: now,
    started_at: now,
    completed_at: now,
  });
}
