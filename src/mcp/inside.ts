import type { Logger } from 'pino';
import { checkKeyRules } from '../accounts/key-rules.ts';
import { checkLimitedKey } from '../accounts/limited-keys.ts';
import type { BackgroundParts } from '../api/background.ts';
import { chatEndpoints, type ChatParts } from '../api/chat.ts';
import { estimate } from '../api/estimate.ts';
import { generate } from '../api/generate.ts';
import { get_model, list_models } from '../api/models.ts';
import { get_balance } from '../api/money.ts';
import { cancel_task, get_task, list_tasks } from '../api/tasks.ts';
import { errorAnswer, expectedError, internalError } from '../http/error-answer.ts';
import type { Call, Endpoint, KeyedEndpoint } from '../http/endpoint.ts';
import { scopesOf } from '../http/scopes.ts';
import { limitOfKey } from '../catalog/key-limits.ts';
import { windowError } from '../http/window-headers.ts';
import { service_errors } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { isRecord } from '../lib/is-record.ts';
import { readBytes } from '../lib/read-bytes.ts';
import type { WindowName, Windows } from '../limits/window.ts';
import { noteRefusal, type Refusals } from '../money/refusals.ts';
import type { Storage } from '../storage/storage.ts';
import type { Codec } from '../styles/codec.ts';
import { loadTask } from '../tasks/task.ts';
import type { Api, ApiFile, ApiReply } from './api.ts';

/** The parts of the app that tools need beside those of their endpoints. */
type OwnParts = {
  readonly windows: Windows;
  readonly storage: Pick<Storage, 'open'>;
  readonly styles: readonly Codec[];
  readonly log: Logger;
  readonly refusals: Pick<Refusals, 'note'>;
};

type PartsOf<E> = E extends Endpoint<infer Parts> ? Parts : never;

/** The parts of the app that a call of any tool takes. */
export type McpParts = OwnParts &
  ChatParts &
  BackgroundParts &
  PartsOf<typeof generate> &
  PartsOf<typeof estimate> &
  PartsOf<typeof list_models> &
  PartsOf<typeof get_balance> &
  PartsOf<typeof get_task> &
  PartsOf<typeof cancel_task> &
  PartsOf<typeof list_tasks>;

type Inner = {
  params?: Record<string, string>;
  query?: Record<string, string>;
  body?: object;
  signal?: AbortSignal;
};

/** Returns the API as it is for the key of `outer`, without a second request: window, scopes and checks are those of each endpoint. */
export function apiInside(app: McpParts, outer: Call): Api {
  const ask = (endpoint: Endpoint<McpParts>, inner: Inner = {}) => callInside(app, outer, endpoint, inner);
  const chat = chatEndpoints(app.styles).find(({ path }) => path === '/v1/chat/completions');
  return {
    models: (query) => ask(list_models, { query }),
    model: (id) => ask(get_model, { params: { id } }),
    estimate: (body) => ask(estimate, { body }),
    generate: (body, wait_s, signal) => ask(generate, { body, query: { wait: String(wait_s) }, signal }),
    task: (id) => ask(get_task, { params: { id } }),
    tasks: (query) => ask(list_tasks, { query }),
    cancel: (id) => ask(cancel_task, { params: { id } }),
    ...(!outer.caller.key.is_limited && { balance: () => ask(get_balance) }),
    chat: (body, signal) => {
      assert(chat, 'callers are offered chat completions');
      return ask(chat, { body, signal });
    },
    files: (task, bytes_max) => readFiles(app, outer.caller.account.id, String(task['id']), bytes_max),
  };
}

async function callInside(
  app: McpParts,
  outer: Call,
  endpoint: Endpoint<McpParts>,
  { params = {}, query = {}, body, signal = outer.gone }: Inner,
): Promise<ApiReply> {
  assert(!endpoint.public && endpoint.session === undefined, 'tools call endpoints that need a key');
  try {
    await admit(app, outer, endpoint);
    const answer = await endpoint.handle(app, {
      method: endpoint.method,
      path: endpoint.path,
      params,
      query: new Map(Object.entries(query)),
      headers: {},
      body: body && { ...body },
      body_bytes: Buffer.alloc(0),
      readForm: undefined,
      readStream: undefined,
      address: outer.address,
      request_id: outer.request_id,
      gone: signal,
      draining: outer.draining,
      releaseBody: () => {},
      caller: outer.caller,
    });
    return { status: answer.status, json: jsonOf(answer.body) };
  } catch (error) {
    const expected = expectedError(error);
    if (!expected) app.log.error({ request_id: outer.request_id, err: error }, 'a tool failed');
    if (expected) noteRefusal(app.refusals, outer.caller, expected);
    const { status, body: text } = errorAnswer(expected ?? internalError(), service_errors, outer.request_id);
    return { status, json: jsonOf(text) };
  }
}

/** Rejects with ApiError 403 or 429, as the endpoint's own path would. */
async function admit(app: McpParts, { caller, address }: Call, endpoint: KeyedEndpoint<McpParts>): Promise<void> {
  const { id, rules } = caller.key;
  if (rules) checkKeyRules(rules, { of_call: scopesOf(endpoint), address });
  checkLimitedKey(caller, endpoint);
  const window: WindowName = endpoint.window ?? 'other';
  const limit = limitOfKey(app.catalog.current.settings, caller, window);
  const taken = await app.windows.take(window, id, limit, performance.now());
  if (!taken.ok) throw windowError(window, taken, caller.key);
}

/** Whole answers are texts, bytes or objects; streams are asked for by no tool. */
function jsonOf(body: unknown): Record<string, unknown> {
  const value: unknown =
    typeof body === 'string' || Buffer.isBuffer(body) ? (body.length === 0 ? {} : JSON.parse(body.toString())) : body;
  return isRecord(value) ? value : {};
}

async function readFiles(app: McpParts, account_id: string, task_id: string, bytes_max: number): Promise<ApiFile[]> {
  const task = await loadTask(app.db, { account_id, task_id });
  const small = (task?.files ?? []).filter(({ item }) => item.size_bytes <= bytes_max);
  const files = small.map(async ({ key, item }): Promise<ApiFile[]> => {
    const opened = await app.storage.open(key).catch(() => undefined); // the link is in the answer
    return opened ? [{ bytes: await readBytes(opened.stream, bytes_max), content_type: item.content_type }] : [];
  });
  return (await Promise.all(files)).flat();
}
