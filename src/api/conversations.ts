import type { CatalogHolder } from '../catalog/catalog.ts';
import { isObject, type JsonObject } from '../catalog/model.ts';
import { RequestMemory } from '../chat/request-memory.ts';
import { keepsResponses, memoryFor, shownItem } from '../conversations/continue.ts';
import {
  changeMetadata,
  checkRoom,
  createConversation,
  deleteConversation,
  findConversation,
  type Conversation,
  type ConversationName,
} from '../conversations/conversations.ts';
import {
  appendItems,
  findItem,
  listItems,
  removeItem,
  type AppendOutcome,
  type ConversationItem,
} from '../conversations/items.ts';
import { fullConversation, lockedConversation } from '../conversations/turn.ts';
import type { StoredParts } from '../conversations/stored-responses.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { ApiError, objectSchema } from '../errors.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { mistake } from '../styles/fields.ts';
import { readKeptItems } from '../styles/responses/items.ts';
import { readMetadata } from '../tasks/create.ts';

/** The parts of the app that conversations take. */
type Parts = StoredParts & {
  readonly clock: Clock;
  readonly catalog: CatalogHolder;
  readonly limits: { readonly body_memory: Semaphore };
};

/** As of the style's own service. */
const items_at_once_max = 20;
const list_limit_max = 100;

const any_object = { type: 'object', additionalProperties: true };
const metadata_schema = { type: ['object', 'null'], additionalProperties: { type: 'string' } };
const items_schema = { type: ['array', 'null'], items: any_object, maxItems: items_at_once_max };
const example_item = { type: 'message', role: 'user', content: 'I ride a red bicycle.' };
const id_param: ParameterDocs = { description: 'Id of a conversation.', schema: { type: 'string' } };
const item_param: ParameterDocs = { description: 'Id of an item.', schema: { type: 'string' } };
const conversation_schema = objectSchema({
  id: { type: 'string' },
  object: { const: 'conversation' },
  created_at: { type: 'integer' },
  metadata: any_object,
});
const conversation_docs = { 200: { description: 'The conversation.', schema: conversation_schema } };
const page_docs = { 200: { description: 'A page of items.', schema: any_object } };

const base = { format: completions_errors, lenient_query: true, long_integers: true } as const;

const create_conversation: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/conversations',
  body_limit_bytes: 32_000_000,
  docs: {
    tag: 'Chat',
    summary: 'Create a conversation',
    description: 'Calls in the responses style continue it by the field `conversation`, with every chat model.',
    body: {
      schema: objectSchema({ items: items_schema, metadata: metadata_schema }, ['items', 'metadata']),
      required: false,
      examples: { message: { items: [example_item], metadata: { topic: 'bicycles' } } },
    },
    responses: conversation_docs,
  },
  handle: async (app, call) => {
    refuseUnkept(app, call);
    const body = bodyOf(call);
    const metadata = readMetadata(body['metadata']);
    const items = readItems(app, body);
    const { times, account_bytes_max } = settingsOf(app);
    const created = await createConversation(app, call.caller.account.id, metadata, { ...times, account_bytes_max });
    if (items.length > 0) added(await appendItems(app, nameOf(call, created.id), items, times), created.id);
    return { status: 200, body: conversationView(created) };
  },
};

const get_conversation: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/conversations/{id}',
  docs: {
    tag: 'Chat',
    summary: 'Get a conversation',
    description: 'Returns its metadata and the time of its creation, without its items.',
    params: { id: id_param },
    responses: conversation_docs,
    errors: [404],
  },
  handle: async (app, call) => ({ status: 200, body: conversationView(await find(app, call)) }),
};

const change_conversation: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/conversations/{id}',
  docs: {
    tag: 'Chat',
    summary: 'Change the metadata of a conversation',
    description: 'Replaces the whole metadata. The items stay as they are.',
    params: { id: id_param },
    body: {
      schema: objectSchema({ metadata: metadata_schema }),
      examples: { topic: { metadata: { topic: 'bicycles' } } },
    },
    responses: conversation_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    const body = bodyOf(call);
    if (!('metadata' in body)) throw mistake('metadata', 'is required');
    const name = nameOf(call);
    const changed = await changeMetadata(app, name, readMetadata(body['metadata']), settingsOf(app).times);
    if (!changed) throw notFound('Conversation', name.id);
    return { status: 200, body: conversationView(changed) };
  },
};

const delete_conversation: Endpoint<Parts> = {
  ...base,
  method: 'DELETE',
  path: '/v1/conversations/{id}',
  docs: {
    tag: 'Chat',
    summary: 'Delete a conversation',
    description: 'With its items. Responses that were given in it stay, and can be continued no longer.',
    params: { id: id_param },
    responses: {
      200: {
        description: 'It is deleted.',
        schema: objectSchema({
          id: { type: 'string' },
          object: { const: 'conversation.deleted' },
          deleted: { type: 'boolean' },
        }),
      },
    },
    errors: [404],
  },
  handle: async (app, call) => {
    const name = nameOf(call);
    if (!(await deleteConversation(app, name, new Date(app.clock.now())))) throw notFound('Conversation', name.id);
    return { status: 200, body: { id: name.id, object: 'conversation.deleted', deleted: true } };
  },
};

const create_items: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/conversations/{id}/items',
  body_limit_bytes: 32_000_000,
  docs: {
    tag: 'Chat',
    summary: 'Add items to a conversation',
    description: 'At its end, and not while a call is in progress there (400, `conversation_locked`).',
    params: { id: id_param },
    body: {
      schema: objectSchema({ items: { ...items_schema, type: 'array', minItems: 1 } }),
      examples: { message: { items: [example_item] } },
    },
    responses: page_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    refuseUnkept(app, call);
    const items = readItems(app, bodyOf(call));
    if (items.length === 0) throw mistake('items', 'must have at least one item');
    const { times, account_bytes_max } = settingsOf(app);
    const name = nameOf(call);
    await find(app, call);
    await checkRoom(app, name.account_id, account_bytes_max);
    return { status: 200, body: listOf(added(await appendItems(app, name, items, times), name.id), false) };
  },
};

const list_items: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/conversations/{id}/items',
  docs: {
    tag: 'Chat',
    summary: 'List the items of a conversation',
    description: 'One page of messages, calls of tools and their results, the newest first unless `order` is `asc`.',
    params: { id: id_param },
    query: {
      limit: {
        description: 'Number of items; large ones make a page shorter.',
        schema: { type: 'integer', minimum: 1, maximum: list_limit_max, default: 20 },
      },
      order: { description: 'By their place in it.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
      after: { description: 'Items after this one in the list.', schema: { type: 'string' } },
    },
    responses: page_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    const limit = wholeNumber(call.query, 'limit', { min: 1, max: list_limit_max }) ?? 20;
    const order = oneOf(call.query, 'order', ['asc', 'desc']) ?? 'desc';
    await find(app, call);
    return withMemory(app, call, async (take) => {
      const page = await listItems(app, nameOf(call), { limit, order, after: clean(call.query.get('after')) }, take);
      if (!page) throw mistake('after', 'must be the id of an item of the conversation');
      return { status: 200, body: listOf(page.items, page.has_more) };
    });
  },
};

const get_item: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/conversations/{id}/items/{item_id}',
  docs: {
    tag: 'Chat',
    summary: 'Get an item of a conversation',
    description: 'Returns one message, call of a tool or result by its id.',
    params: { id: id_param, item_id: item_param },
    responses: { 200: { description: 'The item.', schema: any_object } },
    errors: [404],
  },
  handle: async (app, call) => {
    await find(app, call);
    const id = clean(call.params['item_id']) ?? '';
    const there = await findItem(app, nameOf(call), id);
    if (!there) throw notFound('Item', id);
    return { status: 200, body: shownItem(there.id, there.item) };
  },
};

const delete_item: Endpoint<Parts> = {
  ...base,
  method: 'DELETE',
  path: '/v1/conversations/{id}/items/{item_id}',
  docs: {
    tag: 'Chat',
    summary: 'Delete an item of a conversation',
    description: 'Not while a call is in progress there (400, `conversation_locked`).',
    params: { id: id_param, item_id: item_param },
    responses: conversation_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    const name = nameOf(call);
    const id = clean(call.params['item_id']) ?? '';
    const outcome = await removeItem(app, name, id, new Date(app.clock.now()));
    if (outcome === 'locked') throw lockedConversation();
    if (outcome === 'gone') throw notFound('Item', id);
    return { status: 200, body: conversationView(await find(app, call)) };
  },
};

/** Conversations of the responses style. */
export const conversations: readonly Endpoint<Parts>[] = [
  create_conversation,
  get_conversation,
  change_conversation,
  delete_conversation,
  create_items,
  list_items,
  get_item,
  delete_item,
];

/** Throws ApiError 400 where nothing is kept: what is there can be read and deleted all the same. */
function refuseUnkept(app: Parts, { caller }: Call): void {
  if (keepsResponses(app, caller)) return;
  throw new ApiError('invalid_request', 'Conversations are not kept for this account: send the whole input instead.', {
    code: 'unsupported_field',
  });
}

function bodyOf({ body }: Call): JsonObject {
  return isObject(body) ? body : {};
}

function settingsOf({ catalog, clock }: Parts) {
  const { keep_ms, account_bytes_max } = catalog.current.settings.responses;
  const now = clock.now();
  return { times: { now: new Date(now), expires_at: new Date(now + keep_ms) }, account_bytes_max };
}

function readItems({ catalog }: Parts, body: JsonObject): JsonObject[] {
  const items = readKeptItems(body['items'], 'items', items_at_once_max);
  const { response_bytes_max } = catalog.current.settings.responses;
  if (items.length > 0 && Buffer.byteLength(JSON.stringify(items)) > response_bytes_max)
    throw mistake('items', `must not have more than ${response_bytes_max / 1_000_000} MB together`);
  return items;
}

function added(
  outcome: ConversationItem[] | Exclude<AppendOutcome, 'appended'>,
  conversation_id: string,
): ConversationItem[] {
  if (Array.isArray(outcome)) return outcome;
  if (outcome === 'full') throw fullConversation();
  throw outcome === 'absent' ? notFound('Conversation', conversation_id) : lockedConversation();
}

/** Gives the memory that is taken for reading back when the answer is made. */
async function withMemory(
  app: Parts,
  { caller, gone }: Call,
  work: (take: ReturnType<typeof memoryFor>) => Promise<Answer>,
): Promise<Answer> {
  const memory = new RequestMemory();
  try {
    return await work(memoryFor(app, caller.account.id, gone, memory));
  } finally {
    memory.release();
  }
}

function nameOf({ caller, params }: Call, id = clean(params['id']) ?? ''): ConversationName {
  return { account_id: caller.account.id, id };
}

async function find(app: Parts, call: Call): Promise<Conversation> {
  const name = nameOf(call);
  const conversation = await findConversation(app, name, new Date(app.clock.now()));
  if (!conversation) throw notFound('Conversation', name.id);
  return conversation;
}

function conversationView({ id, created_at, metadata }: Conversation): object {
  return { id, object: 'conversation', created_at: Math.floor(created_at.getTime() / 1000), metadata };
}

function listOf(items: readonly ConversationItem[], has_more: boolean): object {
  const data = items.map(({ id, item }) => shownItem(id, item));
  return { object: 'list', data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more };
}

/** No text of the database has this character. */
function clean(id: string | undefined): string | undefined {
  return id?.replaceAll('\0', '');
}

/** A conversation of another account is as unknown as one that never was. */
function notFound(what: 'Conversation' | 'Item', id: string): ApiError {
  const param = what === 'Item' ? 'item_id' : 'id';
  return new ApiError('not_found', `${what} with id ${JSON.stringify(id.slice(0, 80))} not found.`, { param });
}
