import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { inPath, runIdIn, statusIn, unanswered } from '../../http/answers.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import { openUpstream } from '../../http/http.ts';
import { optionProblems } from '../../http/options.ts';
import {
  NotStarted,
  type Adapter,
  type AdapterParts,
  type Provider,
  type RunContext,
  type RunFile,
  type RunRequest,
  type RunState,
} from '../../provider.ts';
import { objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { upstreamErrorOf, type Hints } from '../../http/refusal.ts';
import { fileOf, outputProblems, resultsOf } from '../../http/results.ts';
import { costProblems, creditCost } from '../../http/upstream-cost.ts';
import { readFalModelPrices } from './prices.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://queue.fal.run';

/** No limit is documented; its own library asks twice a second for each run. */
const calls = { per_minute: 3_000, burst: 100 };

const poll_intervals: { readonly [kind in RunContext['kind']]: PollInterval } = {
  image: { min_ms: 500, max_ms: 5_000 },
  audio: { min_ms: 500, max_ms: 5_000 },
  video: { min_ms: 2_000, max_ms: 10_000 },
};

/** Errors of the queue after which no runner has begun with the run. */
const before_the_start = /^(?:startup_timeout|runner_scheduling_failure|runner_connection_(?:timeout|refused|error))$/i;

const ran_too_long = /^(?:request_timeout|generation_timeout)$/i;

/** Errors of a model that are its own trouble though the status says that the request is wrong. */
const own_trouble = /^(?:internal_server_error|downstream_service_\w+|generation_timeout)$/i;

const hints: Hints = {
  moderation: /content_policy_violation|\bnsfw\b|flagged/i,
  about_us: /user is locked|exhausted balance/i,
};

/**
 * The queue of fal. `upstream_model` is the endpoint, `owner/alias/sub/path`; the input is the model's own.
 * Options: `priority` (normal, low); `credit_price` is what a billable unit costs, in `cost_currency` (USD).
 */
export const fal = {
  serves: (kind) => kind === 'image' || kind === 'video' || kind === 'audio',
  // Has a queue of its own, and refuses nothing: https://docs.fal.ai/documentation/model-apis/concurrency-limits, read 2026-11-25
  limits: { label: 'fal' },
  checkOptions,
  readPrices: readFalModelPrices,
  open,
} satisfies Adapter;

function checkOptions(options: JsonObject, output: JsonObject = {}): OptionProblem[] {
  const option_names = { priority: ['normal', 'low'], credit_price: undefined, cost_currency: undefined };
  return [...optionProblems(options, option_names), ...costProblems(options), ...outputProblems(output)];
}

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = config.base_url ?? default_base_url;
  const headers: Record<string, string> =
    config.api_key === undefined ? {} : { authorization: `Key ${config.api_key}` };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, rate_limit: calls });
  return {
    media: 'either',
    start: (run, signal) => start(upstream, run, signal),
    poll: async (run, ref, signal) => poll(upstream, run, readPollState(ref), signal),
    cancel: (run, ref, signal) => cancel(upstream, run, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const { model, input, options, events_url, start_limit_ms, now_ms, kind } = run;
  const { priority } = options;
  const headers = {
    // In the queue, not at work: what has not begun by then is given up there, unbilled.
    'x-fal-request-timeout': String(Math.max(1, Math.ceil(start_limit_ms / 1_000))),
    ...(typeof priority === 'string' && { 'x-fal-queue-priority': priority }),
  };
  const query: Record<string, string> = events_url === undefined ? {} : { fal_webhook: events_url };
  const answer = await upstream.call({
    method: 'POST',
    path: `/${inPath(model)}`,
    query,
    headers,
    json: input,
    signal,
  });
  if (!answer.ok) throw upstream.refusal(answer, hints);
  const response = answer.object();
  const state: PollState = { id: runIdIn(response, 'request_id'), started_at_ms: now_ms };
  for (const name of ['status_url', 'response_url', 'cancel_url']) {
    const url = upstream.link(response[name]);
    if (url !== undefined) state[name] = url;
  }
  return goingOn(state, 'waiting', now_ms, poll_intervals[kind]);
}

/** Namespaces in which the app is a part further on, as in `workflows/owner/name`: fal-js, utils.ts, read 2026-11-25. */
const namespaces = ['workflows', 'comfy'];

/** The link that the submit named, or its usual place, which is below the app and not below its sub-path. */
function targetOf(upstream: Upstream, { model }: RunContext, state: PollState, name: string, end: string) {
  const url = upstream.link(state[name]);
  if (url !== undefined) return { url };
  const parts = model.split('/');
  const app = parts.slice(0, namespaces.includes(parts[0] ?? '') ? 3 : 2).join('/');
  return { path: `/${inPath(app)}/requests/${inPath(textIn(state, 'id') ?? '')}${end}` };
}

function getStatus(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal): Promise<Answer> {
  return upstream.call({ method: 'GET', ...targetOf(upstream, run, state, 'status_url', '/status'), signal });
}

async function poll(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal): Promise<RunState> {
  const answer = await getStatus(upstream, run, state, signal);
  if (answer.status === 404) return unknownRun(state, run.now_ms, poll_intervals[run.kind]);
  if (!answer.ok) throw unanswered(answer);
  const status = statusIn(answer.object(), 'status');
  if (status === '') throw new Error('the answer to the poll has no status');
  if (status === 'completed') return fetchResult(upstream, run, state, signal);
  return goingOn(state, status === 'in_queue' ? 'waiting' : 'running', run.now_ms, poll_intervals[run.kind]);
}

/** With `sync_mode` the files are within the answer, as data URLs. */
const answer_bytes_max = 64 * 1_048_576;

/** Completed is what has worked and what has not: this answer decides. */
async function fetchResult(
  upstream: Upstream,
  run: RunContext,
  state: PollState,
  signal: AbortSignal,
): Promise<RunState> {
  const target = targetOf(upstream, run, state, 'response_url', '');
  const answer = await upstream.call({ method: 'GET', ...target, signal, answer_bytes_max });
  if (answer.ok) return succeeded(upstream, run, answer);
  if (answer.status === 404) return unknownRun(state, run.now_ms, poll_intervals[run.kind]);
  const refusal = upstreamErrorOf(answer.text());
  const is_of_the_run = (refusal.message !== '' || refusal.type !== '') && ![401, 403, 429].includes(answer.status);
  if (!is_of_the_run) throw unanswered(answer);
  if (/still in progress/i.test(refusal.message))
    return goingOn(state, 'running', run.now_ms, poll_intervals[run.kind]);
  return failed(upstream, answer, { ...refusal, type: answer.headers['x-fal-error-type'] ?? refusal.type });
}

function failed(upstream: Upstream, answer: Answer, error: { message: string; type: string }): RunState {
  const { message, type } = error;
  const by_our_limit = answer.headers['x-fal-request-timeout-type'] === 'user';
  if (by_our_limit) throw new NotStarted('timeout', 'it did not start within the limit that it was given');
  if (before_the_start.test(type)) throw new NotStarted('unavailable', `ended before its start: ${type}`);
  const is_callers = answer.status < 500 && !own_trouble.test(type);
  const state: RunState & { phase: 'failed' } = ran_too_long.test(type)
    ? { phase: 'failed', type: 'timeout', message: 'The model did not finish in time.' }
    : upstream.failure({ code: type, message }, is_callers ? { ...hints, callers: /(?:)/ } : hints);
  return answer.status < 500 ? state : { ...state, upstream_cost: nothing };
}

/** Its own faults it never bills; what else has failed it may, by the time that it took. */
const nothing = { amount: '0', currency: 'USD' };

function succeeded(upstream: Upstream, run: RunContext, answer: Answer): RunState {
  const response = answer.object();
  const flags = response['has_nsfw_concepts'];
  const files = filesIn(response, run, Array.isArray(flags) ? flags : []);
  if (files === 'moderated') return upstream.failure({ code: 'content_policy_violation' });
  const upstream_cost = creditCost(answer.headers['x-fal-billable-units'], run.options);
  return { phase: 'done', files, ...(upstream_cost && { upstream_cost }) };
}

/** Files are objects with a `url`; where there is none, a model has written a text. Flagged images are black. */
function filesIn(body: JsonObject, { kind, output }: RunContext, flags: Json[]): RunFile[] | 'moderated' {
  if (output['files'] !== undefined) return resultsOf(body, output);
  const images = objectsIn(body, 'images');
  const output_images = images.length > 0 ? images : [objectIn(body, 'image')];
  const black = output_images.filter((_, index) => flags[index] === true);
  const clean = objectsWithUrl(body).filter((file) => !black.includes(file));
  if (clean.length === 0 && black.length > 0) return 'moderated';
  const of_kind = clean.filter((file) => textIn(file, 'content_type')?.startsWith(`${kind}/`) ?? true);
  const files = (of_kind.length > 0 ? of_kind : clean).flatMap((file) => fileOf(textIn(file, 'url') ?? ''));
  const text = textIn(body, 'text') ?? textIn(body, 'output');
  return files.length > 0 || text === undefined ? files : [{ text, content_type: 'text/plain' }];
}

const depth_max = 6;

function objectsWithUrl(value: Json, depth = 0): JsonObject[] {
  if (typeof value !== 'object' || value === null || depth > depth_max) return [];
  if (isObject(value) && textIn(value, 'url') !== undefined) return [value];
  return Object.values(value).flatMap((member) => objectsWithUrl(member, depth + 1));
}

/** Only what is still in the queue is stopped for certain; a runner that was told to stop would fail, and be charged. */
async function cancel(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal) {
  const now = await getStatus(upstream, run, state, signal);
  if (!now.ok || statusIn(now.object(), 'status') !== 'in_queue') return 'billed';
  const target = targetOf(upstream, run, state, 'cancel_url', '/cancel');
  const answer = await upstream.call({ method: 'PUT', ...target, signal });
  const words = answer.text().toLowerCase();
  const is_removed = answer.status === 200 && !words.includes('cancellation_requested') && !words.includes('completed');
  return is_removed ? 'stopped' : 'billed';
}
