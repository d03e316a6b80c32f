import { ApiError } from '../errors.ts';
import { deleteResponse, findResponse, type StoredResponse } from '../conversations/stored-responses.ts';
import { deleteBackground, findBackground, readBackgroundResponse } from '../conversations/background.ts';
import { background } from '../styles/responses/background.ts';
import { backgroundResponse, cancelBackground, streamOf, type FollowParts } from './background.ts';
import { inputItems } from '../conversations/continue.ts';
import { objectSchema } from '../errors.ts';
import type { Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { completions_errors } from '../styles/completions/errors.ts';

/** The parts of the app that stored responses take. */
type Parts = FollowParts & { readonly clock: Clock };

const params: Record<string, ParameterDocs> = { id: { description: 'Id of a response.', schema: { type: 'string' } } };
const any_object = { type: 'object', additionalProperties: true };
const base = { format: completions_errors, lenient_query: true } as const;
const list_limit_max = 100;

const get_response: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/responses/{id}',
  docs: {
    tag: 'Chat',
    summary: 'Get a response',
    description: 'As it was answered, until it expires or is deleted; one in the background also before that.',
    params,
    query: {
      stream: {
        description: 'Of a response in the background that was created with `stream`: its events.',
        schema: { type: 'boolean', default: false },
      },
      starting_after: { description: 'Events after this number.', schema: { type: 'integer', minimum: 0 } },
    },
    responses: { 200: { description: 'The response, or its stream of named events.', schema: any_object } },
    errors: [404],
  },
  handle: async (app, call) => {
    const row = await findBackground(app, nameOf(call));
    if (oneOf(call.query, 'stream', ['true', 'false']) === 'true') {
      const after = wholeNumber(call.query, 'starting_after', { min: 0, max: events_max }) ?? -1;
      if (!row?.is_streamed) throw row || (await find(app, call)) ? notStreamed() : unknownResponse(nameOf(call).id);
      return streamOf(app, row, after, call);
    }
    const body = row && (await backgroundResponse(app, background, row));
    return { status: 200, body: body ?? (await find(app, call)).response };
  },
};

const events_max = 2_147_483_647;

function notStreamed(): ApiError {
  const message = 'Only a response that was created with "background": true and "stream": true has a stream.';
  return new ApiError('invalid_request', message, { param: 'stream' });
}

const delete_response: Endpoint<Parts> = {
  ...base,
  method: 'DELETE',
  path: '/v1/responses/{id}',
  docs: {
    tag: 'Chat',
    summary: 'Delete a response',
    description: 'What continues it can be continued no longer.',
    params,
    responses: {
      200: {
        description: 'It is deleted.',
        schema: objectSchema({ id: { type: 'string' }, object: { const: 'response' }, deleted: { type: 'boolean' } }),
      },
    },
    errors: [404],
  },
  handle: async (app, call) => {
    const { account_id, id } = nameOf(call);
    const row = await findBackground(app, { account_id, id });
    if (row && !row.done_at)
      throw new ApiError('invalid_request', 'The response is being made: cancel it first.', { param: 'id' });
    const is_ended = await deleteBackground(app, { account_id, id });
    const is_deleted = await deleteResponse(app, account_id, id, new Date(app.clock.now()));
    if (!is_deleted && !is_ended) throw unknownResponse(id);
    return { status: 200, body: { id, object: 'response', deleted: true } };
  },
};

const list_input_items: Endpoint<Parts> = {
  ...base,
  method: 'GET',
  path: '/v1/responses/{id}/input_items',
  docs: {
    tag: 'Chat',
    summary: 'List the input of a response',
    description: 'The items of this call alone, without what it continued.',
    params,
    query: {
      limit: {
        description: 'Number of items.',
        schema: { type: 'integer', minimum: 1, maximum: list_limit_max, default: 20 },
      },
      order: { description: 'By their place in the input.', schema: { enum: ['asc', 'desc'], default: 'desc' } },
      after: { description: 'Items after this one in the list.', schema: { type: 'string' } },
    },
    responses: { 200: { description: 'A page of items.', schema: any_object } },
    errors: [404],
  },
  handle: async (app, call) => {
    const limit = wholeNumber(call.query, 'limit', { min: 1, max: list_limit_max }) ?? 20;
    const order = oneOf(call.query, 'order', ['asc', 'desc']) ?? 'desc';
    const items = inputItems(await find(app, call));
    return { status: 200, body: pageOf(order === 'asc' ? items : items.toReversed(), limit, call.query.get('after')) };
  },
};

/** A page of a list, as the SDKs of the style go through it. */
function pageOf(items: readonly { id: string }[], limit: number, after: string | undefined): object {
  const at = after === undefined ? -1 : items.findIndex(({ id }) => id === after);
  if (after !== undefined && at === -1)
    throw new ApiError('invalid_request', 'after must be the id of an item of the list.', { param: 'after' });
  const data = items.slice(at + 1, at + 1 + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: at + 1 + limit < items.length,
  };
}

const cancel_response: Endpoint<Parts> = {
  ...base,
  method: 'POST',
  path: '/v1/responses/{id}/cancel',
  ignores_body: true,
  docs: {
    tag: 'Chat',
    summary: 'Cancel a response in the background',
    description:
      'One that no upstream was asked for costs nothing; else what has come is charged, as in a stream that its caller leaves.',
    params,
    responses: { 200: { description: 'The response.', schema: any_object } },
    errors: [400, 404],
  },
  handle: async (app, call) => {
    const row = await findBackground(app, nameOf(call));
    if (!row) {
      await find(app, call);
      throw new ApiError('invalid_request', 'Only responses in the background can be cancelled.', { param: 'id' });
    }
    await cancelBackground(app, background, row, call.gone);
    const ended = (await findBackground(app, nameOf(call))) ?? row;
    const body = await backgroundResponse(app, background, ended);
    return { status: 200, body: body ?? (await find(app, call)).response };
  },
};

/** Responses that were stored. */
export const stored_responses: readonly Endpoint<Parts>[] = [
  get_response,
  delete_response,
  list_input_items,
  cancel_response,
];

function nameOf({ caller, params: { id = '' } }: Call): { account_id: string; id: string } {
  return { account_id: caller.account.id, id: clean(id) };
}

async function find(app: Parts, call: Call): Promise<StoredResponse> {
  const name = nameOf(call);
  const stored =
    (await findResponse(app, name, new Date(app.clock.now()))) ?? (await readBackgroundResponse(app, name));
  if (!stored) throw unknownResponse(name.id);
  return stored;
}

/** No text of the database has this character. */
function clean(id: string): string {
  return id.replaceAll('\0', '');
}

/** A response of another account is as unknown as one that never was. */
function unknownResponse(id: string): ApiError {
  return new ApiError('not_found', `Response with id ${JSON.stringify(id.slice(0, 80))} not found.`, { param: 'id' });
}
