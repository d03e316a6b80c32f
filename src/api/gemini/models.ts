import { ArrayWriter } from '../../chat/array-writer.ts';
import { countTokens } from '../../chat/count.ts';
import { StreamWriter } from '../../chat/stream-writer.ts';
import { listedAlias, listedModels } from '../../catalog/alias.ts';
import type { CatalogHolder } from '../../catalog/catalog.ts';
import { modelRefused, offerOfKey } from '../../catalog/key-models.ts';
import { unknownModel } from '../../catalog/model-errors.ts';
import type { JsonObject, Model } from '../../catalog/model.ts';
import { ApiError } from '../../errors.ts';
import type { Answer, Call, Endpoint } from '../../http/endpoint.ts';
import { wholeNumber } from '../../http/query.ts';
import { gemini } from '../../styles/gemini/codec.ts';
import { isObject, needObject } from '../../styles/fields.ts';
import { camelCase, inOneForm } from '../../styles/gemini/names.ts';
import { answerChat, body_limit_bytes, chat_headers, type ChatParts } from '../chat.ts';
import { callerOf, readChat, type StateParts } from '../chat-request.ts';
import { embedContents, type EmbedParts } from './embeddings.ts';
import { unknownPageToken } from './page-token.ts';

/** The parts of the app that the calls of Gemini's style take. */
type Parts = ChatParts & StateParts & EmbedParts & Parameters<typeof countTokens>[0];

/** Model ids come as `models/ID` too. */
function idIn(name: string): string {
  return name.startsWith('models/') ? name.slice('models/'.length) : name;
}

type Method = (app: Parts, call: Call, model: string) => Promise<Answer>;

const methods: ReadonlyMap<string, Method> = new Map<string, Method>([
  ['generateContent', (app, call, model) => answerChat(app, gemini, call, { body: bodyOf(call.body, model, false) })],
  [
    'streamGenerateContent',
    (app, call, model) => {
      const writer = call.query.get('alt') === 'sse' ? new StreamWriter() : new ArrayWriter();
      return answerChat(app, gemini, call, { body: bodyOf(call.body, model, true), writer });
    },
  ],
  ['countTokens', answerCount],
  ['embedContent', (app, call, model) => embedContents(app, call, model, false)],
  ['batchEmbedContents', (app, call, model) => embedContents(app, call, model, true)],
]);

/** The body with what the path says. */
function bodyOf(body: unknown, model: string, stream: boolean): JsonObject {
  return { ...inOneForm(isObject(body) ? body : {}), model, stream };
}

/** The request itself, or the conversation of one alone. */
async function answerCount(app: Parts, call: Call, model: string): Promise<Answer> {
  const members = isObject(call.body) ? call.body : {};
  const name = Object.keys(members).find((key) => camelCase(key) === 'generateContentRequest');
  const request = name === undefined ? members : needObject(members[name], name);
  const body = bodyOf(request, model, false);
  const { caller: payer, request_id, gone } = call;
  const caller = callerOf(gemini.caller, call);
  try {
    const received = await readChat(app, gemini, { caller: payer, request_id, body, gone }, caller);
    return { status: 200, body: { totalTokens: await countTokens(app, gemini, received, caller) } };
  } finally {
    caller.memory.release();
  }
}

/** Named as in GET /v1beta/models/{name}: in OpenAPI, paths that differ in the names of their parts only are one path. */
const params = {
  name: {
    description: 'Model id, a colon and the method; a slash in the id may be sent plain or as %2F.',
    schema: { type: 'string' },
    example: 'sandbox/chat:generateContent',
  },
};

const description = [
  'Methods: `generateContent`, `streamGenerateContent` (events with `?alt=sse`, else one JSON array), `countTokens`, `embedContent`, `batchEmbedContents`.',
  'Every chat model takes them. The key may also be sent as `x-goog-api-key` or `?key=`.',
].join(' ');

function callModel(path: string, hidden: boolean): Endpoint<Parts> {
  return {
    method: 'POST',
    path: `${path}/{+name}`,
    window: 'chat',
    format: gemini.caller.errors,
    body_limit_bytes,
    lenient_query: true,
    long_integers: true,
    docs: {
      tag: 'Chat',
      summary: "Call a model in Gemini's style",
      description,
      params,
      query: { alt: { description: '`sse` for a stream of events.', schema: { type: 'string' } } },
      body: {
        schema: gemini.caller.endpoint.body,
        ...(!hidden && { examples: { text: { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] } } }),
      },
      responses: {
        200: { description: 'The answer, in the style of this path.', headers: chat_headers },
        404: { description: 'There is no such model, or no such method.' },
      },
      errors: [402, 403, 404, 502, 504],
      ...(hidden && { hidden }),
    },
    handle: (app, call) => {
      const name = call.params['name'] ?? '';
      const colon = name.lastIndexOf(':');
      const method = colon === -1 ? undefined : methods.get(name.slice(colon + 1));
      if (method) return method(app, call, idIn(name.slice(0, colon)));
      // Of version v1, what has no method is the path of a model.
      if (hidden && colon === -1)
        throw new ApiError('method_not_allowed', 'This path accepts GET, HEAD.', { headers: { allow: 'GET, HEAD' } });
      const names = [...methods.keys()].join(', ');
      throw new ApiError('not_found', `The path must end in a colon and one of these methods: ${names}.`);
    },
  };
}

/** Upper bound for `pageSize`; without it all models are returned. */
const page_size_max = 1_000;

const list_models: Endpoint<{ readonly catalog: CatalogHolder }> = {
  method: 'GET',
  path: '/v1beta/models',
  format: gemini.caller.errors,
  lenient_query: true,
  docs: {
    tag: 'Models',
    summary: "List the models in Gemini's style",
    description: 'Models of chat and of embeddings.',
    query: {
      pageSize: {
        description: 'Number of models.',
        schema: { type: 'integer', minimum: 1, maximum: page_size_max },
      },
      pageToken: { description: 'The `nextPageToken` of the page before.', schema: { type: 'string' } },
    },
    responses: { 200: { description: '`models`, and `nextPageToken` if there are more.' } },
  },
  handle: answerModels,
};

/** Parts of the app that models take. */
type ModelParts = { readonly catalog: CatalogHolder };

/** A list of models in Gemini's style. */
function answerModels(app: ModelParts, { query, caller }: Call): Answer {
  const offered = listedModels(offerOfKey(app.catalog.current, caller.key))
    .map(({ model }) => model)
    .filter(isOffered);
  const token = query.get('pageToken') ?? '';
  const first = token === '' ? 0 : offered.findIndex(({ id }) => id === token) + 1;
  if (token !== '' && first === 0) throw unknownPageToken();
  const size = wholeNumber(query, 'pageSize', { min: 1, max: page_size_max }) ?? offered.length;
  const page = offered.slice(first, first + size);
  const last = page.at(-1);
  const has_more = last !== undefined && first + size < offered.length;
  return {
    status: 200,
    body: { models: page.map(rendered), ...(has_more && { nextPageToken: last.id }) },
  };
}

function isOffered({ kind, hidden }: Model): boolean {
  return !hidden && (kind === 'chat' || kind === 'embedding');
}

const get_model: Endpoint<{ readonly catalog: CatalogHolder }> = {
  method: 'GET',
  path: '/v1beta/models/{+name}',
  format: gemini.caller.errors,
  lenient_query: true,
  docs: {
    tag: 'Models',
    summary: "Get a model in Gemini's style",
    description: 'A model of chat or of embeddings, with its token limits and its methods.',
    params: {
      name: {
        description: 'Model id; a slash in it may be sent plain or as %2F.',
        schema: { type: 'string' },
        example: 'sandbox/chat',
      },
    },
    responses: { 200: { description: 'The model.' } },
    errors: [403, 404],
  },
  handle: (app, call) => answerModel(app, call, call.params['name'] ?? ''),
};

/** One model in Gemini's style. Throws ApiError 404, and 403 where the key may not use it. */
function answerModel(app: ModelParts, { caller: { key } }: Call, name: string): Answer {
  const { current } = app.catalog;
  const id = idIn(name);
  const model = current.models.get(id) ?? listedAlias(current, id)?.model;
  if (!model || (model.kind !== 'chat' && model.kind !== 'embedding'))
    throw unknownModel(id, 'id', current.retired.get(id)?.retirement);
  const { models, aliases } = offerOfKey(current, key);
  const allowed = models.get(id) ?? listedAlias({ models, aliases }, id)?.model;
  if (!allowed) throw modelRefused(id, key.models, 'id');
  return { status: 200, body: rendered(allowed) };
}

/**
 * Answers a call of /v1/models in Gemini's style if it comes with the header of its SDKs: with version v1, which is the one
 * of the SDK for Python, models have the same paths as those of other styles.
 */
export function modelsOrGemini<App extends ModelParts>(
  kind: 'list' | 'get',
  handle: (app: App, call: Call) => Promise<Answer>,
): (app: App, call: Call) => Promise<Answer> | Answer {
  return (app, call) => {
    if (call.headers['x-goog-api-key'] === undefined) return handle(app, call);
    return kind === 'list' ? answerModels(app, call) : answerModel(app, call, call.params['id'] ?? '');
  };
}

const chat_methods = ['generateContent', 'streamGenerateContent', 'countTokens'];

function rendered({ id, kind, name, description: text, limits, capabilities }: Model): object {
  const thinks = capabilities.includes('thinking') || capabilities.includes('reasoning');
  return {
    name: `models/${id}`,
    version: id,
    displayName: name,
    description: text,
    ...(limits.context_tokens !== undefined && { inputTokenLimit: limits.context_tokens }),
    ...(limits.max_output_tokens !== undefined && { outputTokenLimit: limits.max_output_tokens }),
    supportedGenerationMethods: kind === 'chat' ? chat_methods : ['embedContent', 'batchEmbedContents'],
    ...(kind === 'chat' && { thinking: thinks }),
  };
}

/** The endpoints of Gemini's style; its SDKs can be set to version v1, too. */
export const gemini_endpoints: readonly Endpoint<Parts>[] = [
  list_models,
  get_model,
  callModel('/v1beta/models', false),
  callModel('/v1/models', true),
];
