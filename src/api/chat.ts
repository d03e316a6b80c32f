import { reaches } from '../accounts/limited-keys.ts';
import type { ChatCaller } from '../chat/attempt.ts';
import { runCall, type AttemptRoute, type CallParts } from '../chat/call.ts';
import { countTokens, type CountParts } from '../chat/count.ts';
import {
  forgetBodies,
  priceChatRequest,
  type PricedRequest,
  type PricedChatRequest,
  type PricingParts,
  type ReceivedChat,
  type WithFallbacks,
} from '../chat/priced-request.ts';
import type { ContentLog } from '../contents/content-log.ts';
import { StreamWriter } from '../chat/stream-writer.ts';
import { ignoredHeader } from '../chat/ignored.ts';
import { attemptWithLinks, type LinkedParts } from '../chat/linked.ts';
import { findRecord, type ChatRecord } from '../chat/record.ts';
import { tools_left_out_header } from '../chat/tools.ts';
import type { UploadParts } from '../chat/uploads.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import { isId } from '../lib/ids.ts';
import { costView, exact } from '../money/money.ts';
import type { CallerCodec, ChatEndpoint, Codec } from '../styles/codec.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import { answerInBackground, isInBackground, type BackgroundParts } from './background.ts';
import { refuseBlocked } from './blocked.ts';
import { callerOf, continuedCall, isOffered, readableBody, readChat, type StateParts } from './chat-request.ts';
import { chat_call, limited_key_docs } from './schemas.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';

/** The parts of the app that answering a chat takes. */
export type ChatParts = PricingParts &
  LinkedParts &
  CallParts &
  UploadParts & { readonly contents: Pick<ContentLog, 'begin'> };

export const body_limit_bytes = 32_000_000;

const ignored_description =
  'Fields of the body and betas that no route of the model gets: no SDK of the style defines them, or they have separate prices.';

export const cost_headers = {
  'x-cost-amount': { description: 'The cost, exact to the millionth. Not on streams.', schema: { type: 'string' } },
  'x-cost-currency': { description: 'Its currency.', schema: { type: 'string' } },
  'x-ignored-fields': { description: ignored_description, schema: { type: 'string' } },
};

export const chat_headers = {
  ...cost_headers,
  [tools_left_out_header]: {
    description: 'Types of tools that a provider would run and that the model was not given.',
    schema: { type: 'string' },
  },
  'x-route': {
    description: 'Route that answered: the model, and which of its routes, as in `acme/smart#provider`.',
    schema: { type: 'string' },
  },
  'x-route-reason': {
    description:
      'Why it was that route: `default` (first in the order of the operator), `provider.order`, `provider.sort=…`, `provider.only`, `provider.ignore`, `provider.data_collection`; before that the place of a fallback, `models[0]`, and the alias of its model, `alias smart`; with `, fallback` if routes before it failed.',
    schema: { type: 'string' },
  },
  'x-max-tokens': {
    description: 'Maximum output tokens of each answer, if lower than requested and than the limit of the model.',
    schema: { type: 'integer' },
  },
};

/** The chat endpoint of each style that callers are offered, and its call that counts tokens. */
export function chatEndpoints(styles: readonly Codec[]): Endpoint<ChatParts & BackgroundParts>[] {
  return styles.filter(isOffered).flatMap((style) => {
    const { count, names_model_in_path } = style.caller.endpoint;
    if (names_model_in_path) return [];
    return count ? [chatEndpoint(style), countEndpoint(style, count)] : [chatEndpoint(style)];
  });
}

const no_model = { description: 'There is no chat model with this id.' };

const base = { method: 'POST', body_limit_bytes, lenient_query: true, long_integers: true } as const;

function chatEndpoint(style: CallerCodec): Endpoint<ChatParts & BackgroundParts> {
  const { path, summary, description, response } = style.caller.endpoint;
  return {
    ...base,
    path,
    window: 'chat',
    format: style.caller.errors,
    docs: {
      tag: 'Chat',
      summary,
      ...(description !== undefined && { description }),
      body: bodyDocs(style),
      responses: { 200: { description: response, headers: chat_headers }, 404: no_model },
      errors: [402, 403, 404, 502, 504],
    },
    handle: (app, call) =>
      isInBackground(app, style, call) ? answerInBackground(app, style, call) : answerChat(app, style, call),
  };
}

function bodyDocs({ caller }: CallerCodec) {
  const { body: schema, examples } = caller.endpoint;
  return { schema, ...(examples && { examples }) };
}

/** Free of charge, so it counts with the reads. */
function countEndpoint(
  style: CallerCodec,
  count: NonNullable<ChatEndpoint['count']>,
): Endpoint<CountParts & UploadParts & StateParts> {
  return {
    ...base,
    path: count.path,
    format: style.caller.errors,
    docs: {
      tag: 'Chat',
      summary: count.summary,
      description: 'Free of charge. Takes the same body as the call itself.',
      body: bodyDocs(style),
      responses: { 200: { description: count.response }, 404: no_model },
      errors: [403, 404],
    },
    handle: async (app, call) => {
      const caller = callerOf(style.caller, call);
      try {
        const { caller: payer, request_id, gone, body: sent } = call;
        const counted = { caller: payer, request_id, body: sent, gone, counts: true };
        const { body: whole } = (await continuedCall(app, style, counted, caller)) ?? call;
        const body = await readableBody(app, style, { caller: payer, body: whole });
        const received = await readChat(app, style, { caller: payer, request_id, body, gone }, caller);
        return { status: 200, body: count.render(await countTokens(app, style, received, caller)) };
      } finally {
        caller.memory.release();
      }
    },
  };
}

/** Completions are not kept; without this, the path would be a chat call named "completions". */
export const stored_completions: Endpoint<unknown> = {
  method: 'GET',
  path: '/v1/chat/completions',
  window: 'chat',
  format: completions_errors,
  lenient_query: true,
  docs: { tag: 'Chat', summary: 'Not offered', responses: {}, hidden: true },
  handle: () => {
    throw new ApiError('method_not_allowed', 'Completions are not stored here: use POST.', {
      headers: { allow: 'POST' },
    });
  },
};

export const chat_record: Endpoint<{ readonly db: Db } & Pick<CallParts, 'catalog'>> = {
  method: 'GET',
  path: '/v1/chat/{request_id}',
  docs: {
    tag: 'Chat',
    summary: 'Get a chat call',
    description: `Calls of the same account, by the id in the header \`x-request-id\` of the answer. ${limited_key_docs}`,
    params: { request_id: { description: 'The `x-request-id` of the call.', schema: { type: 'string' } } },
    responses: {
      200: { description: 'Model, routes, tokens, times, status and cost, without the content.', schema: chat_call },
    },
    errors: [404],
  },
  handle: async (app, call) => {
    const id = call.params['request_id'] ?? '';
    const record = isId('req', id) ? await findRecord(app.db, call.caller.account.id, id) : undefined;
    if (!record || !(await reaches(app.db, call.caller, record.key_id)))
      throw new ApiError('not_found', `There is no chat call ${JSON.stringify(id.slice(0, 64))}.`);
    return { status: 200, body: rendered(record, app.catalog.current.settings.routing.by_caller) };
  },
};

type ChatOptions = {
  /** The whole body, where a part of it is in the path. */
  body?: Call['body'];
  /** The writer of a stream that is no list of events. */
  writer?: StreamWriter;
};

/** A call of a chat, in any style: whole or streamed. */
export async function answerChat(
  app: ChatParts & StateParts,
  style: CallerCodec,
  call: Call,
  { body = call.body, writer = new StreamWriter() }: ChatOptions = {},
): Promise<Answer> {
  refuseBlocked(call.caller);
  const caller = callerOf(style.caller, call);
  try {
    const { caller: payer, request_id, gone } = call;
    const sent = { caller: payer, request_id, body, gone };
    const continued = await continuedCall(app, style, sent, caller);
    if (continued) caller.end = continued.end;
    if (continued?.keep) caller.keep = continued.keep;
    const whole = await readableBody(app, style, { caller: payer, body: continued?.body ?? body });
    const received = await readChat(app, style, { ...sent, body: whole }, caller);
    const request = { ...received, ...(continued && { echo: continued.echo }) };
    return await answerRequest(app, style, request, caller, writer);
  } catch (error) {
    caller.memory.release();
    await caller.end?.();
    throw error;
  }
}

function answerRequest(
  app: ChatParts,
  style: CallerCodec,
  call: ReceivedChat,
  caller: ChatCaller,
  writer: StreamWriter,
): Promise<Answer> {
  const priced = priceChatRequest(app, style, call);
  caller.memory.add(() => forgetBodies(priced));
  const content = app.contents.begin(style, priced);
  if (content) {
    caller.content = content;
    writer.copy = (bytes) => content.take(bytes);
  }
  const ignored = ignoredHeader(priced, caller);
  const attempt: AttemptRoute<PricedChatRequest> = (...args) => attemptWithLinks(app, ...args);
  const answer = priced.request.stream
    ? streamed(app, priced, attempt, caller, writer)
    : answerWhole(app, priced, attempt, caller);
  if (!ignored) return answer;
  return answer.then(({ headers, ...rest }) => ({ ...rest, headers: { ...headers, ...ignored } }));
}

/** The answer to a call that is not streamed, with its cost. */
export function answerWhole<Priced extends PricedRequest>(
  app: CallParts,
  priced: WithFallbacks<Priced>,
  attempt: AttemptRoute<Priced>,
  caller: ChatCaller,
): Promise<Answer> {
  const writer = new StreamWriter();
  const running = runCall(app, priced, attempt, { caller, writer }).finally(async () => {
    caller.memory.release();
    await caller.end?.();
  });
  return running.then(({ whole: body = '', charged }) => {
    const cost = { 'x-cost-amount': exact(charged), 'x-cost-currency': priced.caller.account.currency };
    const headers = { ...writer.headers, ...cost };
    return { status: 200, headers, body };
  });
}

const stream_headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no', // nginx would hold the events back
};

/** Answers as soon as there is content, or the caller has to hear that we are alive; until then errors are HTTP errors. */
async function streamed(
  app: CallParts,
  priced: PricedChatRequest,
  attempt: AttemptRoute<PricedChatRequest>,
  caller: ChatCaller,
  writer: StreamWriter,
): Promise<Answer> {
  const running = runCall(app, priced, attempt, { caller, writer }).finally(() => caller.end?.());
  const end = () => {
    caller.memory.release(); // nobody reads the request any more
    writer.end();
  };
  void running.catch(() => undefined).finally(end);
  await Promise.race([writer.opened, running]);
  return { status: 200, headers: { ...stream_headers, ...writer.headers }, body: writer };
}

function rendered(record: ChatRecord, names_routes: boolean): object {
  const { id, cost, currency, attempts, created_at, tools, end_user, metadata, price_id: _, ...rest } = record;
  const { input_tokens, cached_input_tokens, cache_write_tokens, cache_write_1h_tokens, ...others } = rest;
  const { output_tokens, reasoning_tokens, ...facts } = others;
  const input = { input_tokens, cached_input_tokens, cache_write_tokens, cache_write_1h_tokens };
  const { search_units, shown_tools } = withoutSearches(tools);
  return {
    object: 'chat.call',
    request_id: id,
    ...facts,
    usage: { ...input, output_tokens, reasoning_tokens, ...(search_units !== undefined && { search_units }) },
    ...(shown_tools && { tools: shown_tools }),
    ...(end_user !== null && { user: end_user }),
    ...(metadata && { metadata }),
    cost: costView(cost, currency),
    attempts: attempts.map(({ route, model, outcome, why, duration_ms }) => ({
      route: names_routes ? route : null,
      ...(model !== undefined && { model }),
      outcome,
      ...(why !== undefined && { why }),
      duration_ms,
    })),
    created_at: created_at.toISOString(),
  };
}

/** Searches of a reranker are kept beside uses of tools; callers see them beside the tokens. */
function withoutSearches(tools: ChatRecord['tools']): {
  search_units?: number | undefined;
  shown_tools: ChatRecord['tools'];
} {
  if (tools?.calls?.search_unit === undefined) return { shown_tools: tools };
  const { search_unit: search_units, ...calls } = tools.calls;
  const shown = {
    ...(tools.left_out && { left_out: tools.left_out }),
    ...(Object.keys(calls).length > 0 && { calls }),
  };
  return { search_units, shown_tools: Object.keys(shown).length > 0 ? shown : null };
}
