import type { Logger } from 'pino';
import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { JsonObject } from '../catalog/model.ts';
import type { RequestMemory } from '../chat/request-memory.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { acquireBodyMemory } from '../limits/body-memory.ts';
import type { RequestState, StateHalf } from '../styles/codec.ts';
import {
  findChain,
  findItems,
  outputOf,
  storeResponse,
  type StoredParts,
  type StoredResponse,
  type TakeMemory,
} from './stored-responses.ts';

/** The parts of the app that continuing a conversation takes. */
export type ContinueParts = StoredParts & {
  readonly catalog: CatalogHolder;
  readonly clock: Clock;
  readonly limits: { readonly body_memory: Semaphore };
  readonly log: Logger;
};

/** A request with all that it continues in its input, and what keeps its answer. */
export type Continued = {
  body: JsonObject;
  /** Members of the answer. */
  echo: JsonObject;
  /** Absent: the answer is not kept. */
  keep: ((answer: JsonObject) => Promise<void>) | undefined;
};

/** The longest conversation, as bytes of JSON: as long as one that is sent whole. */
const conversation_bytes_max = 32_000_000;

/** Tells whether answers are kept for this caller. */
function keepsResponses({ catalog }: Pick<ContinueParts, 'catalog'>, { account }: Caller): boolean {
  return catalog.current.settings.responses.keep_ms > 0 && account.keeps_responses !== false;
}

/**
 * Puts what a request continues in front of its input, so that every upstream understands it. Undefined where nothing is
 * kept for this caller: the request is then taken as it is. Throws ApiError 400 for what is not there any more.
 */
export async function continueRequest(
  parts: ContinueParts,
  style: StateHalf,
  call: { caller: Caller; request_id: string; body: JsonObject; gone: AbortSignal },
  memory: RequestMemory,
): Promise<Continued | undefined> {
  if (!keepsResponses(parts, call.caller)) return undefined;
  const state = style.read(call.body);
  const account_id = call.caller.account.id;
  const now = new Date(parts.clock.now());
  const take = memoryFor(parts, account_id, call.gone, memory);
  const before = await findBefore(parts, account_id, state, now, take);
  const input = await resolve(parts, account_id, state, now, take);
  const { previous_response_id: _, ...body } = call.body;
  if (before.length > 0 || state.references.size > 0) body['input'] = [...before, ...input];
  const json = state.store ? JSON.stringify(input) : '';
  const { response_bytes_max } = parts.catalog.current.settings.responses;
  const store = state.store && Buffer.byteLength(json) <= response_bytes_max;
  return {
    body,
    echo: { store, previous_response_id: state.previous_response_id ?? null },
    keep: store ? (answer) => keepAnswer(parts, { ...call, account_id, state, json }, answer) : undefined,
  };
}

/** A large conversation takes its memory from that of large bodies, which are as many bytes. */
function memoryFor(
  { limits }: Pick<ContinueParts, 'limits'>,
  account_id: string,
  gone: AbortSignal,
  memory: RequestMemory,
): TakeMemory {
  let left_bytes = conversation_bytes_max;
  return async (bytes) => {
    left_bytes -= bytes;
    if (left_bytes < 0) throw tooLong();
    if (bytes < counted_bytes_min) return;
    const waiting = { timeout_ms: wait_ms, signal: gone };
    const permit = await acquireBodyMemory(limits.body_memory, account_id, bytes, waiting);
    memory.add(() => permit.release());
  };
}

/** As of bodies. */
const counted_bytes_min = 65_536;
const wait_ms = 10_000;

function tooLong(): ApiError {
  const message = `The conversation is longer than ${conversation_bytes_max / 1_000_000} MB: begin another one.`;
  return new ApiError('invalid_request', message, { param: 'previous_response_id', code: 'context_length_exceeded' });
}

async function findBefore(
  parts: ContinueParts,
  account_id: string,
  { previous_response_id: id }: RequestState,
  now: Date,
  take: TakeMemory,
): Promise<JsonObject[]> {
  if (id === undefined) return [];
  const chain = await findChain(parts, { account_id, id }, now, take);
  if (Array.isArray(chain)) return chain.flatMap((stored) => [...stored.input, ...outputOf(stored)]);
  const message = `Previous response with id '${chain.missing.slice(0, 80)}' not found.`;
  throw new ApiError('invalid_request', message, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

/** The input with the items themselves in place of their ids. A thought that is not there may be missing. */
async function resolve(
  parts: ContinueParts,
  account_id: string,
  { input, references }: RequestState,
  now: Date,
  take: TakeMemory,
): Promise<readonly JsonObject[]> {
  if (references.size === 0) return input;
  const items = await findItems(parts, account_id, [...references.values()], now, take);
  return input.flatMap((item, index) => {
    const id = references.get(index);
    if (id === undefined) return [item];
    const stored = items.get(id);
    if (stored) return [stored];
    if (id.startsWith('rs_')) return [];
    const message = `Item with id '${id.slice(0, 80)}' not found. Items are kept only with the response that they belong to.`;
    throw new ApiError('not_found', message, { param: `input[${index}]`, code: 'item_not_found' });
  });
}

type KeptCall = { account_id: string; request_id: string; state: RequestState; json: string };

/** Stores an answer with its input. A failure is logged: the caller has an answer all the same. */
async function keepAnswer(parts: ContinueParts, call: KeptCall, answer: JsonObject): Promise<void> {
  const { account_id, request_id, state } = call;
  const { keep_ms, response_bytes_max } = parts.catalog.current.settings.responses;
  const { id } = answer;
  const json = `{"input":${call.json},"response":${JSON.stringify(answer)}}`;
  if (typeof id !== 'string' || keep_ms === 0 || Buffer.byteLength(json) > response_bytes_max) return;
  const created_at = new Date(parts.clock.now());
  try {
    await storeResponse(parts, {
      account_id,
      id,
      previous_id: state.previous_response_id ?? null,
      item_ids: outputOf({ response: answer }).flatMap((item) => (typeof item['id'] === 'string' ? [item['id']] : [])),
      json,
      created_at,
      expires_at: new Date(created_at.getTime() + keep_ms),
    });
  } catch (error) {
    parts.log.error(
      { account_id, request_id, err: error },
      'a response was not stored: it cannot be continued by its id',
    );
  }
}

/** The items of a response's own input, each with an id. */
export function inputItems({ input, response }: StoredResponse): (JsonObject & { id: string })[] {
  const name = String(response['id']).replace(/^resp_/, '');
  return input.map((item, index) => {
    const { id, type = 'message', role, content } = item;
    const is_message = type === 'message';
    const part_type = role === 'assistant' ? 'output_text' : 'input_text';
    const parts = typeof content === 'string' ? [{ type: part_type, text: content }] : content;
    return {
      ...item,
      id: typeof id === 'string' ? id : `${is_message ? 'msg' : 'item'}_${name}_in${index}`,
      type,
      ...(is_message && parts !== undefined && { content: parts, status: item['status'] ?? 'completed' }),
    };
  });
}
