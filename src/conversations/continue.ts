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
import { findConversation } from './conversations.ts';
import { conversation_bytes_max, readItems } from './items.ts';
import { takeTurn, unknownConversation, type ConversationTurn } from './turn.ts';
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
export type ContinuedRequest = {
  body: JsonObject;
  /** Members of the answer. */
  echo: JsonObject;
  /** Absent: the answer is not kept. */
  keep: ((answer: JsonObject) => Promise<void>) | undefined;
  /** To be called when the call has ended, whatever became of it. Never rejects. */
  end(): Promise<void>;
  /** Facts with which another process keeps the answer. */
  facts: KeptFacts;
};

/** A call's own input as JSON, and what it continues. */
export type KeptFacts = {
  readonly input_json: string;
  readonly previous_id: string | null;
  /** The turn of the call: its items come before this place. */
  readonly conversation?: { readonly id: string; readonly before: string };
};

/** A call, as far as what it continues goes. `counts`: nothing is answered, so nothing is changed either. */
export type ContinuingCall = {
  caller: Caller;
  request_id: string;
  body: JsonObject;
  gone: AbortSignal;
  counts?: boolean;
  /** Its turn in a conversation is taken for so long, and ended by whoever answers the call. */
  lasts_ms?: number;
};

/** Tells whether answers and conversations are kept for this caller: of limited keys none, which could not be told from those of others. */
export function keepsResponses({ catalog }: Pick<ContinueParts, 'catalog'>, { account, key }: Caller): boolean {
  return !key.is_limited && catalog.current.settings.responses.keep_ms > 0 && account.keeps_responses !== false;
}

/**
 * Puts what a request continues in front of its input, so that every upstream understands it. Undefined where nothing is
 * kept for this caller: the request is then taken as it is. Throws ApiError 400 for what is not there any more, and for
 * a conversation in which another call is in progress.
 */
export async function continueRequest(
  parts: ContinueParts,
  style: StateHalf,
  call: ContinuingCall,
  memory: RequestMemory,
): Promise<ContinuedRequest | undefined> {
  if (!keepsResponses(parts, call.caller)) return undefined;
  const state = style.read(call.body);
  const turn = call.counts ? undefined : await takeTurnOf(parts, call, state);
  try {
    return await continueFrom(parts, call, { state, turn }, memory);
  } catch (error) {
    await turn?.end();
    throw error;
  }
}

/** The turn of a call that names a conversation. */
async function takeTurnOf(
  parts: ContinueParts,
  { caller, request_id, lasts_ms }: ContinuingCall,
  { conversation_id: id, input }: RequestState,
): Promise<ConversationTurn | undefined> {
  if (id === undefined) return undefined;
  const { keep_ms } = parts.catalog.current.settings.responses;
  const name = { account_id: caller.account.id, id };
  const json_bytes = Buffer.byteLength(JSON.stringify(input));
  return takeTurn(parts, {
    name,
    request_id,
    keep_ms,
    items: input.length,
    json_bytes,
    ...(lasts_ms !== undefined && { lasts_ms }),
  });
}

async function continueFrom(
  parts: ContinueParts,
  call: ContinuingCall,
  { state, turn }: { state: RequestState; turn: ConversationTurn | undefined },
  memory: RequestMemory,
): Promise<ContinuedRequest> {
  const account_id = call.caller.account.id;
  const reading = {
    account_id,
    now: new Date(parts.clock.now()),
    take: memoryFor(parts, account_id, call.gone, memory),
  };
  const before = await findBefore(parts, reading, state, turn);
  const input = await resolve(parts, reading, state, before);
  const { previous_response_id: _, conversation: __, ...body } = call.body;
  if (before.length > 0 || state.references.size > 0) body['input'] = [...before.map(({ item }) => item), ...input];
  const input_json = state.store ? JSON.stringify(input) : '';
  const { response_bytes_max } = parts.catalog.current.settings.responses;
  const store = state.store && Buffer.byteLength(input_json) <= response_bytes_max;
  const { conversation_id } = state;
  const facts: KeptFacts = {
    input_json,
    previous_id: state.previous_response_id ?? null,
    ...(turn && conversation_id !== undefined && { conversation: { id: conversation_id, before: turn.next_place } }),
  };
  const { request_id } = call;
  const keep = async (answer: JsonObject) => {
    if (store) await keepAnswer(parts, { account_id, request_id }, facts, answer);
    await turn?.append([...input, ...outputOf({ response: answer })]);
  };
  return {
    body,
    echo: {
      store,
      previous_response_id: state.previous_response_id ?? null,
      ...(conversation_id !== undefined && { conversation: { id: conversation_id } }),
    },
    keep: store || turn ? keep : undefined,
    end: async () => turn?.end(),
    facts,
  };
}

/** Returns what takes the memory of a conversation from that of large bodies, which are as many bytes. */
export function memoryFor(
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

/** An item of what comes before a request; `id`: as others name it. */
type ItemBefore = { id?: string; item: JsonObject };

type Reading = { account_id: string; now: Date; take: TakeMemory };

/** Returns what comes before a request: a conversation as of its turn, or a chain of responses and the conversation that it began in. */
async function findBefore(
  parts: ContinueParts,
  reading: Reading,
  { previous_response_id: id, conversation_id }: RequestState,
  turn: ConversationTurn | undefined,
): Promise<ItemBefore[]> {
  const { account_id, now, take } = reading;
  if (conversation_id !== undefined) {
    const items = await conversationBefore(parts, reading, conversation_id, turn?.next_place);
    if (!items) throw unknownConversation(conversation_id);
    return items;
  }
  if (id === undefined) return [];
  const chain = await findChain(parts, { account_id, id }, now, take);
  if (!Array.isArray(chain)) throw missingResponse(chain.missing);
  const [{ conversation: start } = { conversation: undefined }] = chain;
  const started = start ? await conversationBefore(parts, reading, start.id, start.before) : [];
  if (!started) throw missingResponse(id);
  const turns = chain.flatMap((stored) => [...stored.input, ...outputOf(stored)]);
  return [...started, ...turns.map((item) => ({ item }))];
}

function missingResponse(id: string): ApiError {
  const message = `Previous response with id '${id.slice(0, 80)}' not found.`;
  return new ApiError('invalid_request', message, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

/** The items of a conversation before a place, or all of them; undefined if it is not there. */
async function conversationBefore(
  parts: ContinueParts,
  { account_id, now, take }: Reading,
  id: string,
  before = String(Number.MAX_SAFE_INTEGER),
): Promise<ItemBefore[] | undefined> {
  const name = { account_id, id };
  if (!(await findConversation(parts, name, now))) return undefined;
  return readItems(parts, name, before, take);
}

/** The input with the items themselves in place of their ids. A thought that is not there may be missing. */
async function resolve(
  parts: ContinueParts,
  { account_id, now, take }: Reading,
  { input, references }: RequestState,
  before: readonly ItemBefore[],
): Promise<readonly JsonObject[]> {
  if (references.size === 0) return input;
  const named = new Map(before.flatMap(({ id, item }) => (id === undefined ? [] : [[id, item] as const])));
  const ids = [...references.values()].filter((id) => !named.has(id));
  const items = await findItems(parts, account_id, ids, now, take);
  return input.flatMap((item, index) => {
    const id = references.get(index);
    if (id === undefined) return [item];
    const stored = named.get(id) ?? items.get(id);
    if (stored) return [stored];
    if (id.startsWith('rs_')) return [];
    const message = `Item with id '${id.slice(0, 80)}' not found. Items are kept only with the response or the conversation that they belong to.`;
    throw new ApiError('not_found', message, { param: `input[${index}]`, code: 'item_not_found' });
  });
}

/** Returns a response as it is stored, with its input. */
export function storedJson({ input_json, conversation }: KeptFacts, response: JsonObject): string {
  const start = conversation ? `"conversation":${JSON.stringify(conversation)},` : '';
  return `{"input":${input_json},${start}"response":${JSON.stringify(response)}}`;
}

/** Stores an answer with its input. A failure is logged: the caller has an answer all the same. */
export async function keepAnswer(
  parts: StoredParts & Pick<ContinueParts, 'catalog' | 'clock' | 'log'>,
  { account_id, request_id }: { account_id: string; request_id: string },
  facts: KeptFacts,
  answer: JsonObject,
): Promise<void> {
  const { keep_ms, response_bytes_max } = parts.catalog.current.settings.responses;
  const { id } = answer;
  const json = storedJson(facts, answer);
  if (typeof id !== 'string' || keep_ms === 0 || Buffer.byteLength(json) > response_bytes_max) return;
  const created_at = new Date(parts.clock.now());
  try {
    await storeResponse(parts, {
      account_id,
      id,
      previous_id: facts.previous_id,
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
    const { id, type = 'message' } = item;
    return shownItem(typeof id === 'string' ? id : `${type === 'message' ? 'msg' : 'item'}_${name}_in${index}`, item);
  });
}

/** Returns an item as lists have it: with its id, and a message in parts, whatever it was sent as. */
export function shownItem(id: string, item: JsonObject): JsonObject & { id: string } {
  const { type = 'message', role, content } = item;
  if (type !== 'message') return { ...item, id, type };
  const part_type = role === 'assistant' ? 'output_text' : 'input_text';
  const parts = typeof content === 'string' ? [{ type: part_type, text: content }] : content;
  return {
    ...item,
    id,
    type,
    ...(parts !== undefined && { content: parts, status: item['status'] ?? 'completed' }),
  };
}
