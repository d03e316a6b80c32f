import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import type { Units } from '../../../catalog/price.ts';
import { idIn, inPath, runIdIn, statusIn, unanswered } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
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
import { countIn, objectIn, textIn } from '../../http/reading.ts';
import type { Hints } from '../../http/refusal.ts';
import { outputProblems, resultsOf } from '../../http/results.ts';
import { costOf, costProblems, decimalOf, sumOf } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://api.replicate.com/v1';

/** 3,000 calls a minute that create nothing; some are left for cancels and other programs with this key. */
const calls = { per_minute: 2_400, burst: 100 };

const poll_interval: PollInterval = { min_ms: 500, max_ms: 5_000 };

/** Hosts of files that may need the key. */
const file_hosts = /^https:\/\/(?:[a-z0-9-]+\.)*replicate\.delivery$|^https:\/\/api\.replicate\.com$/;

/** Shorter deadlines are refused, and a longer one than a run may take says nothing. */
const deadline_s = { least: 5, most: 86_400 };

const hints: Hints = {
  moderation: /\bnsfw\b|\bE005\b|sensitive content|flagged|content (?:policy|filter)|prohibited content/i,
  callers: /\bE006\b|^\s*(?:invalid|unsupported) (?:input|image|audio|video|value)/i,
  unavailable: /\bspecified version does not exist/i,
  about_us: /insufficient credit|you have reached (?:your|the) (?:free time|spend) limit|unauthenticated/i,
};

/**
 * Replicate. `upstream_model` is `owner/name` (an official model), `owner/name:VERSION` or a VERSION of 64 hex
 * digits, or `deployments/owner/name`. The input is the model's own. Options: `version: latest` runs the newest
 * version of an `owner/name` that is not official; `second_price` is what a second of `predict_time` costs, for
 * margins, in `cost_currency` (USD).
 */
export const replicate = {
  serves: (kind) => kind === 'image' || kind === 'video' || kind === 'audio',
  // https://replicate.com/docs/topics/predictions/rate-limits, read 2026-11-25
  limits: { label: 'Replicate', per_minute: 600 },
  checkOptions,
  open,
} satisfies Adapter;

function checkOptions(options: JsonObject, output: JsonObject = {}): OptionProblem[] {
  const price = options['second_price'];
  const is_price = price === undefined || (typeof price === 'string' && decimalOf(price) !== undefined);
  return [
    ...optionProblems(options, { version: ['latest'], second_price: undefined, cost_currency: undefined }),
    ...(is_price ? [] : [{ field: 'second_price', message: 'must be a decimal in quotes, such as "0.000975"' }]),
    ...costProblems(options),
    ...outputProblems(output),
  ];
}

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = config.base_url ?? default_base_url;
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers: key, rate_limit: calls });
  return {
    media: 'either',
    start: (run, signal) => start(upstream, run, signal),
    poll: async (run, ref, signal) => {
      const state = await poll(upstream, run, readPollState(ref), signal);
      return state.phase === 'done' ? { ...state, files: state.files.map((file) => withKey(file, key)) } : state;
    },
    cancel: (_run, ref, signal) => cancel(upstream, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const { path, version } = targetOf(run);
  const { input, events_url, total_limit_ms, now_ms } = run;
  const json: JsonObject = {
    ...(version !== undefined && { version }),
    input,
    ...(events_url !== undefined && { webhook: events_url, webhook_events_filter: ['start', 'completed'] }),
  };
  const limit_s = Math.min(Math.max(Math.ceil(total_limit_ms / 1_000), deadline_s.least), deadline_s.most);
  const headers = { 'cancel-after': `${limit_s}s` };
  const answer = await upstream.call({ method: 'POST', path, headers, json, signal });
  if (!answer.ok) throw upstream.refusal(answer, hints);
  const response = answer.object();
  const id = runIdIn(response, 'id');
  const urls = objectIn(response, 'urls');
  const [url, cancel_url] = [upstream.link(urls['get']), upstream.link(urls['cancel'])];
  const state: PollState = { id, started_at_ms: now_ms, ...(url && { url }), ...(cancel_url && { cancel_url }) };
  // Whatever state it has by now, the first poll tells it: then the run is written down.
  return goingOn(state, 'waiting', now_ms, poll_interval);
}

/** Returns the path for the runs of a model. */
function targetOf({ model, options }: RunContext): { path: string; version?: string } {
  const deployment = /^deployments\/([^/]+\/[^/:]+)$/.exec(model)?.[1];
  if (deployment !== undefined) return { path: `/deployments/${inPath(deployment)}/predictions` };
  const is_version = model.includes(':') || !model.includes('/') || options['version'] === 'latest';
  return is_version ? { path: '/predictions', version: model } : { path: `/models/${inPath(model)}/predictions` };
}

function getPrediction(upstream: Upstream, state: PollState, signal: AbortSignal): Promise<Answer> {
  const url = upstream.link(state['url']);
  const target = url === undefined ? { path: `/predictions/${inPath(idIn(state, 'id') ?? '')}` } : { url };
  return upstream.call({ method: 'GET', ...target, signal, answer_bytes_max });
}

async function poll(upstream: Upstream, run: RunContext, state: PollState, signal: AbortSignal): Promise<RunState> {
  const answer = await getPrediction(upstream, state, signal);
  if (answer.status === 404) return unknownRun(state, run.now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  return stateOf(upstream, run, state, answer.object());
}

/** Small files come within the answer, as data URLs. */
const answer_bytes_max = 64 * 1_048_576;

function stateOf(upstream: Upstream, run: RunContext, state: PollState, prediction: JsonObject): RunState {
  switch (statusIn(prediction, 'status')) {
    case 'starting':
      return goingOn(state, prediction['started_at'] ? 'running' : 'waiting', run.now_ms, poll_interval);
    case 'succeeded':
      return succeeded(upstream, run, prediction);
    case 'failed':
      return upstream.failure(troubleIn(prediction), hints);
    case 'aborted':
      throw new NotStarted('timeout', 'the deadline came before the start');
    case 'canceled':
      if (!prediction['started_at']) throw new NotStarted('unavailable', 'the run was canceled before its start');
      return stopped(run, prediction);
    case '':
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', run.now_ms, poll_interval);
  }
}

/** Stopped while it ran: the time until then is charged. */
function stopped(run: RunContext, prediction: JsonObject): RunState {
  const upstream_cost = costByTime(objectIn(prediction, 'metrics'), run.options);
  const message = 'The model provider stopped the run before its end.';
  return { phase: 'failed', type: 'timeout', message, ...(upstream_cost && { upstream_cost }) };
}

function troubleIn(prediction: JsonObject): { message?: string } {
  const message = textIn(prediction, 'error');
  return message === undefined ? {} : { message };
}

function succeeded(upstream: Upstream, run: RunContext, prediction: JsonObject): RunState {
  // An hour after the end the output is removed, and no later poll brings it back.
  if (prediction['data_removed'] === true) return upstream.failure({});
  const metrics = objectIn(prediction, 'metrics');
  const units: Units = {};
  const [input_tokens, output_tokens] = [countIn(metrics, 'input_token_count'), countIn(metrics, 'output_token_count')];
  if (input_tokens !== undefined) units.input_token = String(input_tokens);
  if (output_tokens !== undefined) units.output_token = String(output_tokens);
  const upstream_cost = costByTime(metrics, run.options);
  return {
    phase: 'done',
    files: resultsOf(prediction['output'], run.output),
    ...(Object.keys(units).length > 0 && { units }),
    ...(upstream_cost && { upstream_cost }),
  };
}

function costByTime({ predict_time }: JsonObject, options: JsonObject) {
  const count = decimalOf(predict_time);
  const price = decimalOf(options['second_price']);
  return count === undefined || price === undefined ? undefined : costOf(sumOf([{ count, price }]), options);
}

function withKey(file: RunFile, headers: Record<string, string>): RunFile {
  if (!('url' in file) || !URL.canParse(file.url)) return file;
  const { origin } = new URL(file.url);
  return file_hosts.test(origin) ? { ...file, credentials: { origin, headers } } : file;
}

/** A run that works is charged up to its stop: it goes on, and its result is the caller's. */
async function cancel(upstream: Upstream, state: PollState, signal: AbortSignal): Promise<'stopped' | 'billed'> {
  const now = await getPrediction(upstream, state, signal);
  const prediction = now.ok ? now.object() : {};
  if (statusIn(prediction, 'status') !== 'starting' || prediction['started_at']) return 'billed';
  const url = upstream.link(state['cancel_url']);
  const target = url === undefined ? { path: `/predictions/${inPath(idIn(state, 'id') ?? '')}/cancel` } : { url };
  const answer = await upstream.call({ method: 'POST', ...target, signal });
  if (!answer.ok) return 'billed';
  const response = answer.object();
  const is_over = ['canceled', 'aborted'].includes(statusIn(response, 'status'));
  return is_over && !response['started_at'] && state.seen_running !== true ? 'stopped' : 'billed';
}
