import { findUpload } from '../accounts/caller-files.ts';
import { keysSeenBy, reaches } from '../accounts/limited-keys.ts';
import { isObject, type JsonObject } from '../catalog/model.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError } from '../errors.ts';
import { refuseBlocked } from '../api/blocked.ts';
import { limited_key_docs } from '../api/schemas.ts';
import { expires_s_min } from '../api/uploads.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { wholeNumber } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { isId, newId } from '../lib/ids.ts';
import type { Engine } from '../queue/queue.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { mistake, needText, readCount, readObject, readText } from '../styles/fields.ts';
import { readMetadata } from '../tasks/create.ts';
import { batch_queue, findBatch, insertBatch, listBatches, requestCancel, type Batch } from './batches.ts';
import { batch_paths } from './call.ts';
import { lines_max } from './input.ts';

/** Batches of OpenAI's SDKs. */

/** The parts of the app that these calls take. */
type Parts = ReadParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly engine: Pick<Engine, 'send' | 'wake' | 'promote'>;
};

/** Batches of one account that have not ended. */
const unfinished_max = 20;

const window_ms = 86_400_000;
const list_limit_max = 100;
const list_limit_default = 20;

const base = { format: completions_errors, lenient_query: true } as const;
const text = { type: 'string' };
const nullable = { type: ['integer', 'null'] };
const id: Record<string, ParameterDocs> = { id: { description: 'Id of a batch.', schema: text } };

const batch_view = {
  type: 'object',
  properties: {
    id: text,
    object: { const: 'batch' },
    endpoint: text,
    errors: { type: ['object', 'null'], description: 'Mistakes in the input file.' },
    input_file_id: text,
    completion_window: { const: '24h' },
    status: {
      enum: ['validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled'],
    },
    output_file_id: { type: ['string', 'null'], description: 'A file of answers, a line each.' },
    error_file_id: { type: ['string', 'null'], description: 'A file of what was no answer, a line each.' },
    created_at: { type: 'integer' },
    in_progress_at: nullable,
    expires_at: { type: 'integer' },
    finalizing_at: nullable,
    completed_at: nullable,
    failed_at: nullable,
    expired_at: nullable,
    cancelling_at: nullable,
    cancelled_at: nullable,
    request_counts: {
      type: 'object',
      properties: { total: { type: 'integer' }, completed: { type: 'integer' }, failed: { type: 'integer' } },
    },
    metadata: { type: 'object', additionalProperties: text },
  },
};

const batch_docs = { 200: { description: 'The batch.', schema: batch_view } };

const create_batch: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/batches',
  docs: {
    tag: 'Batches',
    summary: 'Create a batch',
    description:
      'Calls of one endpoint, in a file of JSON lines with `custom_id`, `method`, `url` and `body`. Workers make them within a day, beside live calls, and each is held and charged as any other.',
    body: {
      schema: {
        type: 'object',
        required: ['input_file_id', 'endpoint', 'completion_window'],
        properties: {
          input_file_id: { ...text, description: `A file of the account, with up to ${lines_max} lines.` },
          endpoint: { enum: batch_paths },
          completion_window: { const: '24h' },
          metadata: { type: ['object', 'null'], additionalProperties: text },
          output_expires_after: {
            type: ['object', 'null'],
            properties: { anchor: { const: 'created_at' }, seconds: { type: 'integer', minimum: expires_s_min } },
          },
        },
      },
      examples: {
        chat: { input_file_id: 'FILE_ID', endpoint: '/v1/chat/completions', completion_window: '24h' },
      },
    },
    responses: batch_docs,
    errors: [403],
  },
  handle: createBatch,
};

async function createBatch(app: Parts, call: Call): Promise<Answer> {
  const { caller } = call;
  refuseBlocked(caller);
  const body = isObject(call.body) ? call.body : {};
  const now = new Date(app.clock.now());
  const batch = { ...readFields(app, body), account_id: caller.account.id, key_id: caller.key.id };
  const file = isId('file', batch.input_file_id)
    ? await findUpload(app.db, caller, batch.input_file_id, now)
    : undefined;
  if (!file) {
    throw mistake('input_file_id', 'names no file of this account: upload it with POST /v1/files', 'file_not_found');
  }
  const name = { account_id: batch.account_id, id: newId('batch', now.getTime()) };
  const row = { ...batch, ...name, created_at: now, expires_at: new Date(now.getTime() + window_ms) };
  const is_added = await app.db.tx(async (tx) => {
    if (!(await insertBatch(tx, row, unfinished_max))) return false;
    await app.engine.send(tx, batch_queue, { account_id: name.account_id, task_id: name.id }, { key: name.id });
    return true;
  });
  if (!is_added) throw tooManyBatches();
  app.engine.wake(batch_queue);
  return answer(await findBatch(app.db, name), name.id);
}

function readFields({ catalog }: Parts, body: JsonObject) {
  const input_file_id = needText(body, 'input_file_id', 'input_file_id');
  const endpoint = needText(body, 'endpoint', 'endpoint');
  if (!batch_paths.includes(endpoint)) throw mistake('endpoint', `must be one of ${batch_paths.join(', ')}`);
  const window = needText(body, 'completion_window', 'completion_window');
  if (window !== '24h') throw mistake('completion_window', 'must be "24h"');
  const after = readObject(body, 'output_expires_after', 'output_expires_after');
  if (after && readText(after, 'anchor', 'output_expires_after.anchor') !== 'created_at')
    throw mistake('output_expires_after.anchor', 'must be "created_at"');
  const at = 'output_expires_after.seconds';
  const seconds = after && readCount(after, 'seconds', at, expires_s_min);
  if (after && seconds === undefined) throw mistake(at, 'is required');
  const keep_s = Math.max(1, Math.floor(catalog.current.settings.files.keep_ms / 1000));
  return {
    input_file_id,
    endpoint,
    metadata: readMetadata(body['metadata']),
    keep_s: Math.min(seconds ?? Infinity, keep_s),
  };
}

function tooManyBatches(): ApiError {
  const message = `The account may have at most ${unfinished_max} batches that have not ended. Wait until one ends, or cancel one.`;
  return new ApiError('rate_limit', message, {
    code: 'batches_limit',
    headers: { 'retry-after': '60', 'x-should-retry': 'false' },
  });
}

const list_batches: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/batches',
  docs: {
    tag: 'Batches',
    summary: 'List batches',
    description: `Newest first. ${limited_key_docs}`,
    query: {
      limit: {
        description: 'Number of batches.',
        schema: { type: 'integer', minimum: 1, maximum: list_limit_max, default: list_limit_default },
      },
      after: { description: 'Batches after this one in the list.', schema: text },
    },
    responses: { 200: { description: 'A page of batches.', schema: { type: 'object' } } },
  },
  handle: async (app, { caller, query, gone }) => {
    const after = query.get('after');
    if (after !== undefined && !isId('batch', after)) throw mistake('after', 'must be the id of a batch');
    const limit = wholeNumber(query, 'limit', { min: 1, max: list_limit_max }) ?? list_limit_default;
    const db = reading(app, { key: caller.account.id, gone });
    const filter = { account_id: caller.account.id, after, limit, ...(await keysSeenBy(db, caller)) };
    const { batches, has_more } = await listBatches(db, filter);
    const ends = { first_id: batches[0]?.id ?? null, last_id: batches.at(-1)?.id ?? null };
    return { status: 200, body: { object: 'list', data: batches.map(rendered), ...ends, has_more } };
  },
};

const get_batch: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/batches/{id}',
  docs: {
    tag: 'Batches',
    summary: 'Get a batch',
    description: 'Its state, the number of its requests, and the ids of its files of results.',
    params: id,
    responses: batch_docs,
    errors: [404],
  },
  handle: async (app, call) => answer(await find(app, call), call.params['id']),
};

const cancel_batch: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/batches/{id}/cancel',
  ignores_body: true,
  docs: {
    tag: 'Batches',
    summary: 'Cancel a batch',
    description: 'Calls that have begun end, and are charged. The files have what was answered.',
    params: id,
    responses: batch_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    const batch = await find(app, call);
    if (batch?.ended_at)
      throw new ApiError('invalid_request', `The batch is ${batch.status}.`, { code: 'batch_ended' });
    if (batch) {
      await requestCancel(app.db, batch, new Date(app.clock.now()));
      await app.engine.promote(batch_queue, [batch.id]);
    }
    return answer(await find(app, call), call.params['id']);
  },
};

/** A batch of another account, or out of reach of the key, is as unknown as one that never was. */
async function find({ db }: Parts, { caller, params }: Call): Promise<Batch | undefined> {
  const batch_id = params['id'] ?? '';
  if (!isId('batch', batch_id)) return undefined;
  const batch = await findBatch(db, { account_id: caller.account.id, id: batch_id });
  return batch && (await reaches(db, caller, batch.key_id)) ? batch : undefined;
}

function answer(batch: Batch | undefined, batch_id = ''): Answer {
  if (batch) return { status: 200, body: rendered(batch) };
  throw new ApiError('not_found', `There is no batch ${JSON.stringify(batch_id.slice(0, 60))}.`, { param: 'id' });
}

function rendered(batch: Batch): object {
  const { id: batch_id, status, ended_at, errors, total, completed, failed } = batch;
  const endedAs = (word: Batch['status']) => (status === word ? unixTime(ended_at) : null);
  return {
    id: batch_id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors && { object: 'list', data: errors },
    input_file_id: batch.input_file_id,
    completion_window: '24h',
    status,
    output_file_id: batch.has_output ? batch.output_id : null,
    error_file_id: batch.has_errors ? batch.error_id : null,
    created_at: unixTime(batch.created_at),
    in_progress_at: unixTime(batch.in_progress_at),
    expires_at: unixTime(batch.expires_at),
    finalizing_at: unixTime(batch.finalizing_at),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: unixTime(batch.cancelling_at),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total, completed, failed },
    metadata: batch.metadata,
  };
}

function unixTime(date: Date | null): number | null {
  return date && Math.floor(date.getTime() / 1000);
}

export const batch_endpoints: readonly Endpoint<Parts>[] = [create_batch, list_batches, get_batch, cancel_batch];
