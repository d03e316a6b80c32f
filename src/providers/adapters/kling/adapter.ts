import { createHmac } from 'node:crypto';
import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { filesAt, idIn, runIdIn, refusedAs, statusIn, unanswered, withoutVersion } from '../../http/answers.ts';
import { system_rate_clock, type RateClock } from '../../../concurrency/token-bucket.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { submissionOf, type Submission } from './submission.ts';
import { optionProblems } from '../../http/options.ts';
import { InputRefused, NotStarted, type Adapter, type AdapterParts, type Provider } from '../../provider.ts';
import type { RunContext, RunRequest, RunState, UpstreamCost } from '../../provider.ts';
import { objectIn, objectsIn, textIn } from '../../http/reading.ts';
import type { Hints } from '../../http/refusal.ts';
import { costProblems, creditCost, decimalOf } from '../../http/upstream-cost.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://api-singapore.klingai.com';

/** The provider limits runs at once, not calls; this is our own measure. */
const calls = { per_minute: 1_800, burst: 100 };

const poll_intervals: Record<'image' | 'video', PollInterval> = {
  image: { min_ms: 2_000, max_ms: 10_000 },
  video: { min_ms: 5_000, max_ms: 15_000 },
};

/**
 * Codes that stand beside the status: 1000 to 1004 are about our key, 1100 to 1103 our account, its debts and
 * permissions, 1304 our address; 1300 and 1301 the content; 1302 is too often, 1303 too many at once.
 */
const refusals: Hints = { about_us: /(?:100[0-4]|110[0-3]|1304)\b/, moderation: /^130[01]\b/ };
const failures: Hints = { moderation: /risk control|content security|sensitive|polic(y|ies)/i };

/** A code that comes with status 200 refuses all the same. */
function statusOfCode(code: string): number {
  if (/^(120|130[01])/.test(code)) return 400;
  if (/^130[23]/.test(code)) return 429;
  return code.startsWith('1') ? 401 : 503;
}

/**
 * Kling. `upstream_model` is of one of two APIs. `kling-v2-6` and other names with a `v`: the input is the rest of the
 * body: prompt, negative_prompt, duration (made a text), mode (std, pro), aspect_ratio, cfg_scale, sound (on, off),
 * image and image_tail (files), image_list (a list of `{ image }`), camera_control, multi_prompt …; for images
 * prompt, aspect_ratio, resolution, n, image. `kling-3.0`, `kling-3.0-turbo`, `kling-3.0-omni`, with a dot: prompt,
 * contents (a list of `{ type: first_frame, url }` and the like, into which the prompt is put), settings: {
 * resolution, aspect_ratio, duration (made a number), audio, multi_shot }, options: { watermark_info }. Items without
 * their file are left out, so a mapping may name files that the caller need not give.
 * Options: `endpoint`, a part of the path, where the input does not tell it (`omni-video`, `motion-control`,
 * `omni-image` …; by itself text or image to video, several images to video, or generations of images);
 * `credit_price` and `cost_currency`, what a unit of a resource pack costs; money that the answer tells needs neither.
 * The key is one of the new form, or `ACCESS:SECRET`.
 */
export const kling = {
  serves: (kind) => kind === 'image' || kind === 'video',
  limits: { label: 'Kling' },
  checkOptions: (options) => [
    ...optionProblems(options, { endpoint: undefined, credit_price: undefined, cost_currency: undefined }),
    ...(isEndpoint(options['endpoint'] ?? 'none')
      ? []
      : [{ field: 'endpoint', message: 'must be a part of a path, such as omni-video' }]),
    ...costProblems(options),
  ],
  open,
} satisfies Adapter;

function isEndpoint(value: JsonObject[string]): boolean {
  return typeof value === 'string' && /^[\w-]+$/.test(value);
}

type Client = { upstream: Upstream; rate_clock: RateClock; keyed(now_ms: number): Record<string, string> };

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = withoutVersion(config.base_url ?? default_base_url, /\/v1$/);
  const headers = { accept: 'application/json' };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, rate_limit: calls });
  const keyed = (now_ms: number) => authorizationOf(config.api_key, now_ms);
  const client = { upstream, rate_clock: parts.rate_clock ?? system_rate_clock, keyed };
  return {
    media: 'either',
    start: (run, signal) => start(client, run, signal),
    poll: async (run, ref, signal) => poll(client, run, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

const token_seconds = 1_800;
const clock_slack_seconds = 5;

/** A key of two parts signs a token for each call; one of one part is the token. */
function authorizationOf(api_key: string | undefined, now_ms: number): Record<string, string> {
  if (api_key === undefined) return {};
  const [iss = '', ...secret] = api_key.split(':');
  if (secret.length === 0) return { authorization: `Bearer ${api_key}` };
  const now_seconds = Math.floor(now_ms / 1_000);
  const claims = { iss, exp: now_seconds + token_seconds, nbf: now_seconds - clock_slack_seconds };
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = createHmac('sha256', secret.join(':')).update(signed).digest('base64url');
  return { authorization: `Bearer ${signed}.${signature}` };
}

async function start(client: Client, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const submission = submissionOf(run);
  const id = await submit(client, run, submission, signal).catch((error: unknown) =>
    recover(client, run, submission, error, signal),
  );
  const state = { id, started_at_ms: run.now_ms, ...(!submission.is_new && { path: submission.path }) };
  return goingOn(state, 'waiting', run.now_ms, pollIntervalOf(run));
}

function pollIntervalOf({ kind }: RunContext): PollInterval {
  return kind === 'video' ? poll_intervals.video : poll_intervals.image;
}

async function submit(
  { upstream, keyed }: Client,
  run: RunRequest,
  submission: Submission,
  signal: AbortSignal,
): Promise<string> {
  const { path, json, is_new } = submission;
  const answer = await upstream.call({ method: 'POST', path, json, headers: keyed(run.now_ms), signal });
  if (!answer.ok) throw upstream.refusal(answer, refusals);
  const response = answer.object();
  const code = idIn(response, 'code') ?? '0';
  if (code !== '0') throw upstream.refusal(refusedAs(answer, statusOfCode(code), response), refusals);
  return runIdIn(objectIn(response, 'data'), is_new ? 'id' : 'task_id');
}

/** A run that was taken while its answer was lost is found within this time, or stays unknown. */
const search_pauses_ms = [0, 1_000, 2_000];

/**
 * The provider takes an id of ours, but makes a second run of a second submit with it. So a submit is never
 * repeated; the run is looked for instead, and only a run that is found is an answer.
 */
async function recover(
  { upstream, rate_clock, keyed }: Client,
  run: RunRequest,
  submission: Submission,
  error: unknown,
  signal: AbortSignal,
): Promise<string> {
  if (isCertain(error)) throw error;
  const { external_id } = submission;
  const target = targetOf(submission.is_new ? undefined : submission.path, external_id, 'external_task_ids');
  for (const pause_ms of search_pauses_ms) {
    try {
      await rate_clock.sleep(pause_ms, signal);
      const answer = await upstream.call({ method: 'GET', ...target, headers: keyed(run.now_ms), signal });
      const task = answer.ok ? taskIn(answer.object()) : {};
      const id = idIn(task, 'id') ?? idIn(task, 'task_id');
      if (id !== undefined) return id;
    } catch {
      if (signal.aborted) break;
    }
  }
  throw error;
}

/** Tells whether there is certainly no run: nothing was sent, or the response has a reason for its refusal. */
function isCertain(error: unknown): boolean {
  if (error instanceof InputRefused) return true;
  if (!(error instanceof NotStarted)) return false;
  return error.cause !== undefined || (error.reason !== 'unavailable' && error.reason !== 'timeout');
}

/** Returns the path for polling a task: below the path of its submit, or the one path for all. */
function targetOf(
  path: string | undefined,
  id: string,
  name: 'task_ids' | 'external_task_ids',
): { path: string; query: Record<string, string> } {
  if (path === undefined) return { path: '/tasks', query: { [name]: id } };
  return { path: `${path}/${encodeURIComponent(id)}`, query: {} };
}

async function poll(
  { upstream, keyed }: Client,
  run: RunContext,
  state: PollState,
  signal: AbortSignal,
): Promise<RunState> {
  const target = targetOf(textIn(state, 'path'), idIn(state, 'id') ?? '', 'task_ids');
  const answer = await upstream.call({ method: 'GET', ...target, headers: keyed(run.now_ms), signal });
  if (answer.status === 404) return unknownRun(state, run.now_ms, pollIntervalOf(run));
  if (!answer.ok) throw unanswered(answer);
  const response = answer.object();
  const code = idIn(response, 'code') ?? '0';
  if (code !== '0') throw new Error(`the poll was answered with the code ${code}`);
  return stateOf(upstream, run, state, taskIn(response), answer);
}

/** The one task of an answer, which may be a list of one. */
function taskIn(answer: JsonObject): JsonObject {
  const [first] = [answer['data'] ?? []].flat();
  return isObject(first) ? first : {};
}

function stateOf(upstream: Upstream, run: RunContext, state: PollState, task: JsonObject, answer: Answer): RunState {
  switch (statusIn(task, 'task_status', 'status')) {
    case 'submitted':
      return goingOn(state, 'waiting', run.now_ms, pollIntervalOf(run));
    case 'succeed':
    case 'succeeded': {
      const upstream_cost = costOfTask(task, run.options);
      return { phase: 'done', files: filesAt(linksIn(task, run.kind)), ...(upstream_cost && { upstream_cost }) };
    }
    case 'failed':
      return upstream.failure({ message: textIn(task, 'task_status_msg') ?? textIn(task, 'message') ?? '' }, failures);
    case '':
      if (Array.isArray(answer.object()['data'])) return unknownRun(state, run.now_ms, pollIntervalOf(run)); // an empty list
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', run.now_ms, pollIntervalOf(run));
  }
}

function linksIn(task: JsonObject, kind: RunContext['kind']): (string | undefined)[] {
  const results = objectsIn(objectIn(task, 'task_result'), `${kind}s`);
  const outputs = objectsIn(task, 'outputs').filter((output) => output['type'] === kind);
  return [...results, ...outputs].map((item) => textIn(item, 'url'));
}

/** Units of a resource pack, or money with its currency. */
function costOfTask(task: JsonObject, options: JsonObject): UpstreamCost | undefined {
  const billing = objectsIn(task, 'billing');
  const cash = billing.find((item) => item['charge_type'] === 'cash');
  const amount = decimalOf(cash?.['amount']);
  if (cash && amount !== undefined) return { amount, currency: textIn(cash, 'currency') ?? 'USD' };
  const pack = billing.find((item) => item['charge_type'] === 'unit');
  return creditCost(task['final_unit_deduction'] ?? pack?.['amount'], options);
}
