import type { Db } from '../db/database.ts';
import type { UntilFinal } from '../tasks/wait.ts';
import { ApiError } from '../errors.ts';
import { withTempFiles, type TempFileParts } from '../files/temp-files.ts';
import { createTask, priceTaskRequest, type CreatedTask, type CreateParts } from '../tasks/create.ts';
import { bodyOf, loadTask, type TaskRef } from '../tasks/task.ts';
import { refuseBlocked } from './blocked.ts';
import type { Call, Endpoint } from '../http/endpoint.ts';
import { generate_body, task } from './schemas.ts';

/** The parts of the app that creating a task and waiting for it take. */
type Parts = CreateParts & TempFileParts & { readonly untilFinal: UntilFinal };

export const wait_s_max = 300;
const body_limit_bytes = 20_000_000;

export const generate: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/generate',
  window: 'generate',
  body_limit_bytes,
  docs: {
    tag: 'Tasks',
    summary: 'Create a generation task',
    description:
      'Creates a task and holds its estimated cost. Each call creates a new task, unless an Idempotency-Key is sent.',
    query: {
      wait: {
        description: 'Wait for completion up to this many seconds; larger values are treated as 300.',
        schema: { type: 'integer', minimum: 0 },
        example: 60,
      },
    },
    headers: {
      'idempotency-key': {
        description: '1–255 characters. The same key and body answer the same task for 24 hours.',
        schema: { type: 'string', minLength: 1, maxLength: 255 },
      },
    },
    body: {
      schema: generate_body,
      examples: { image: { model: 'sandbox/image', input: { prompt: 'a red bicycle' } } },
    },
    responses: { 202: { description: 'The task, final if it finished within `wait`.', schema: task } },
    errors: [402, 403, 404, 409, 422, 502, 504],
  },
  handle: handleGenerate,
};

async function handleGenerate(
  app: Parts,
  call: Call,
): Promise<{ status: number; body: string; headers: Record<string, string> }> {
  const wait_s = readWait(call.query.get('wait'));
  const idempotency_key = readIdempotencyKey(call.headers['idempotency-key']);
  refuseBlocked(call.caller);
  const created = await create(app, call, idempotency_key);
  call.releaseBody(); // the wait may take minutes
  const body =
    wait_s > 0 && !created.is_final ? await waitForBody(app, call, created.ref, wait_s, created.body) : created.body;
  return {
    status: 202,
    body,
    headers: {
      location: `/v1/tasks/${created.ref.task_id}`,
      ...(idempotency_key !== undefined && { 'idempotency-replayed': String(created.replayed) }),
    },
  };
}

function create(app: Parts, call: Call, idempotency_key: string | undefined): Promise<CreatedTask> {
  const idempotency = idempotency_key === undefined ? undefined : { key: idempotency_key, body: call.body_bytes };
  return withTempFiles(app, call.caller.account.id, call, async (spool) => {
    const request = await priceTaskRequest(app, call.caller, call.body ?? {}, { spool });
    const created = await createTask(app, call.caller, request, idempotency);
    app.log.info({ request_id: call.request_id, ...created.ref }, 'task created');
    return created;
  });
}

/** Whole seconds from 0; more than 300 is 300. Anything else is a 400 that names it. */
export function readWait(text: string | undefined): number {
  if (text === undefined) return 0;
  if (!/^\d+$/.test(text)) {
    const message = `wait must be a whole number of seconds from 0 to ${wait_s_max} (got ${JSON.stringify(text.slice(0, 60))}).`;
    throw new ApiError('invalid_request', message, { param: 'wait' });
  }
  return Math.min(Number(text), wait_s_max);
}

export function readIdempotencyKey(value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.length >= 1 && value.length <= 255) return value;
  throw new ApiError('invalid_request', 'Idempotency-Key must have 1 to 255 characters.', { param: 'idempotency-key' });
}

/** The state when the task is final, the time is up, or the service is about to stop. */
async function waitForBody(
  { db, untilFinal }: { db: Db; untilFinal: UntilFinal },
  call: Call,
  ref: TaskRef,
  wait_s: number,
  created: string,
): Promise<string> {
  await untilFinal(ref, wait_s * 1000, AbortSignal.any([call.gone, call.draining]));
  const now = await loadTask(db, ref);
  return now ? bodyOf(now) : created;
}
