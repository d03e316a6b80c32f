import { isObject, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { filesAt, idIn, runIdIn, refusedAs, statusIn, unanswered, withoutVersion } from '../../http/answers.ts';
import { openUpstream, type Answer, type Upstream } from '../../http/http.ts';
import { withoutHollow } from '../../http/inline-media.ts';
import { optionProblems } from '../../http/options.ts';
import { NotStarted, type Adapter, type AdapterParts, type Provider } from '../../provider.ts';
import type { RunContext, RunFile, RunRequest, RunState } from '../../provider.ts';
import { countIn, objectIn, textIn } from '../../http/reading.ts';
import { upstreamErrorOf, type Hints } from '../../http/refusal.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

const default_base_url = 'https://api.minimax.io';

const calls = { per_minute: 600, burst: 60 };

/** The provider's own clients ask every ten seconds; the first videos are done after thirty. */
const poll_interval: PollInterval = { min_ms: 5_000, max_ms: 10_000 };

/** Speech comes in the answer itself, two letters for each byte. */
const speech_bytes_max = 268_435_456;

/** Models of this name have the second API; `api` says so for others. */
const second_api = /^MiniMax-H\d/i;

/** Statuses of its error codes, which come with status 200. */
const status_of_code = new Map<string, number>([
  ...['1002', '1039', '1041', '2045'].map((code) => [code, 429] as const),
  ...['1004', '2049'].map((code) => [code, 401] as const),
  ...['1008', '2056'].map((code) => [code, 402] as const),
  ...['1026', '1027', '1042', '1043', '1044', '2013', '2037', '2039', '2042', '2048', '20132'].map(
    (code) => [code, 400] as const,
  ),
  ['1001', 504],
]);

/** 1026: the input is sensitive; 1027: the result is. */
const moderation = /^102[67]\b|sensitive/i;
const hints: Hints = { moderation, callers: /^(1042|2013|20132)\b/ };

/**
 * MiniMax. Videos of its first API (`MiniMax-Hailuo-2.3`, `S2V-01` …): prompt, first_frame_image and last_frame_image
 * (files), subject_reference, duration, resolution ("768P"), prompt_optimizer. Of its second (`MiniMax-H3`): content, a
 * list of `{ type: text, text }`, `{ type: image_url, image_url: { url }, role }` and the like, or instead of it prompt,
 * first_frame_image and last_frame_image, which become that list; resolution ("2K"), ratio, duration. Speech
 * (`speech-2.8-hd` …): text, voice_setting, audio_setting, language_boost, pronunciation_dict, voice_modify,
 * output_format (hex by itself, or url). Items of `content` without their `url` are left out, so a mapping may name
 * files that the caller need not give.
 * Options: `api`, `v1` or `v2`, where the model's name does not tell it.
 */
export const minimax = {
  serves: (kind) => kind === 'video' || kind === 'audio',
  // Has a limit for each model: https://platform.minimax.io/docs/guides/rate-limits, read 2026-11-25
  limits: { label: 'MiniMax' },
  checkOptions: (options) => optionProblems(options, { api: ['v1', 'v2'] }),
  open,
} satisfies Adapter;

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = withoutVersion(config.base_url ?? default_base_url, /\/v[12]$/);
  const headers = {
    accept: 'application/json',
    ...(config.api_key !== undefined && { authorization: `Bearer ${config.api_key}` }),
  };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, rate_limit: calls });
  return {
    media: 'either',
    start: (run, signal) => (run.kind === 'audio' ? speak(upstream, run, signal) : start(upstream, run, signal)),
    poll: async (run, ref, signal) => {
      const state = readPollState(ref);
      return isSecond(run) ? pollSecond(upstream, run, state, signal) : pollFirst(upstream, run, state, signal);
    },
    cancel: async (run, ref, signal) => (isSecond(run) ? cancel(upstream, readPollState(ref), signal) : 'billed'),
    close: () => upstream.close(),
  };
}

function isSecond({ model, options }: RunContext): boolean {
  return options['api'] === undefined ? second_api.test(model) : options['api'] === 'v2';
}

/** An answer that is one: neither its status nor its code refuses. */
async function submit(
  upstream: Upstream,
  path: string,
  json: JsonObject,
  options: { signal: AbortSignal; answer_bytes_max?: number },
  is_synchronous = false,
): Promise<JsonObject> {
  const answer = await upstream.call({ method: 'POST', path, json, ...options });
  if (!answer.ok) throw upstream.refusal(answer, { ...hints, is_synchronous });
  const response = answer.object();
  const { code, message } = codeOf(response);
  if (code === '0') return response;
  throw upstream.refusal(refusedAs(answer, status_of_code.get(code) ?? 500, { code, message }), {
    ...hints,
    is_synchronous,
  });
}

/** Reads the error code. The first API has one in every response; the second only in errors. */
function codeOf(answer: JsonObject): { code: string; message: string } {
  const base = objectIn(answer, 'base_resp');
  return { code: idIn(base, 'status_code') ?? '0', message: textIn(base, 'status_msg') ?? '' };
}

async function start(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const version = isSecond(run) ? 'v2' : 'v1';
  const input = isSecond(run) ? secondInput(run.input) : run.input;
  const response = await submit(upstream, `/${version}/video_generation`, { ...input, model: run.model }, { signal });
  return goingOn({ id: runIdIn(response, 'task_id'), started_at_ms: run.now_ms }, 'waiting', run.now_ms, poll_interval);
}

/** The fields of the first API as the list that the second wants. */
function secondInput(input: JsonObject): JsonObject {
  const { prompt, first_frame_image, last_frame_image, ...others } = withoutHollow(input, isHollow);
  if ('content' in others) return others;
  const frame = (url: JsonObject[string] | undefined, role: string): JsonObject[] =>
    url === undefined ? [] : [{ type: 'image_url', image_url: { url }, role }];
  const content: JsonObject[] = [
    { type: 'text', text: prompt ?? '' },
    ...frame(first_frame_image, 'first_frame'),
    ...frame(last_frame_image, 'last_frame'),
  ];
  return { content, ...others };
}

/** An item of `content` that should carry a link and does not. */
function isHollow(object: JsonObject): boolean {
  const type = textIn(object, 'type') ?? '';
  return Object.keys(object).length === 0 || (type.endsWith('_url') && !isObject(object[type]));
}

async function get(
  upstream: Upstream,
  path: string,
  signal: AbortSignal,
  query: Record<string, string> = {},
): Promise<Answer> {
  return upstream.call({ method: 'GET', path, query, signal });
}

async function pollFirst(
  upstream: Upstream,
  run: RunContext,
  state: PollState,
  signal: AbortSignal,
): Promise<RunState> {
  const task_id = idIn(state, 'id') ?? '';
  const answer = await get(upstream, '/v1/query/video_generation', signal, { task_id });
  if (answer.status === 404) return unknownRun(state, run.now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  const response = answer.object();
  const { code, message } = codeOf(response);
  switch (statusIn(response, 'status')) {
    case 'preparing':
    case 'queueing':
      return goingOn(state, 'waiting', run.now_ms, poll_interval);
    case 'success':
      return { phase: 'done', files: await storedFile(upstream, idIn(response, 'file_id'), signal) };
    case 'fail':
    case 'failed':
      return upstream.failure({ code, message }, hints);
    case '':
      if (moderation.test(code)) return upstream.failure({ code, message }, hints);
      throw new Error(`the answer to the poll has no status, and the code ${code}`);
    default:
      return goingOn(state, 'running', run.now_ms, poll_interval);
  }
}

/** The first API keeps results as files, whose links live for an hour. */
async function storedFile(upstream: Upstream, file_id: string | undefined, signal: AbortSignal): Promise<RunFile[]> {
  if (file_id === undefined) return [];
  const answer = await get(upstream, '/v1/files/retrieve', signal, { file_id });
  if (!answer.ok) throw unanswered(answer);
  const url = textIn(objectIn(answer.object(), 'file'), 'download_url');
  if (url === undefined) throw new Error('the answer names no link to the file');
  return filesAt([url]);
}

/** The second API answers 500 for a task that it does not have, or 400 for one of more than seven days ago. */
const no_such_task = /record not found|invalid task_id/i;

async function pollSecond(
  upstream: Upstream,
  run: RunContext,
  state: PollState,
  signal: AbortSignal,
): Promise<RunState> {
  const answer = await get(upstream, secondPath('query/video_generation', state), signal);
  if (answer.status === 404 || (!answer.ok && no_such_task.test(upstreamErrorOf(answer.text()).message)))
    return unknownRun(state, run.now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  const task = objectIn(answer.object(), 'task');
  switch (statusIn(task, 'status')) {
    case 'queued':
      return goingOn(state, 'waiting', run.now_ms, poll_interval);
    case 'succeeded':
      return { phase: 'done', files: filesAt([textIn(objectIn(task, 'content'), 'url')]) };
    case 'failed': {
      const error = objectIn(task, 'error');
      return upstream.failure({ code: idIn(error, 'code') ?? '', message: textIn(error, 'message') ?? '' }, hints);
    }
    case 'expired': // nobody took it out of the queue in time
      if (state.seen_running !== true) throw new NotStarted('unavailable', 'the run expired in the queue');
      return upstream.failure({ code: 'expired' });
    case 'cancelled':
    case 'canceled':
      return upstream.failure({ code: 'cancelled' });
    case '':
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', run.now_ms, poll_interval);
  }
}

function secondPath(part: string, state: PollState): string {
  return `/v2/${part}/${encodeURIComponent(idIn(state, 'id') ?? '')}`;
}

/** Only a run in the queue can be cancelled; of a finished one the same call deletes what there is. */
async function cancel(upstream: Upstream, state: PollState, signal: AbortSignal): Promise<'stopped' | 'billed'> {
  const answer = await get(upstream, secondPath('query/video_generation', state), signal);
  const is_waiting = answer.ok && statusIn(objectIn(answer.object(), 'task'), 'status') === 'queued';
  if (!is_waiting) return 'billed';
  const deleted = await upstream.call({ method: 'DELETE', path: secondPath('video_generation', state), signal });
  const is_confirmed = deleted.ok && (deleted.bytes.length === 0 || codeOf(deleted.object()).code === '0');
  return is_confirmed ? 'stopped' : 'billed';
}

/** Speech is not polled: the answer to the submit is the audio. */
async function speak(upstream: Upstream, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const json: JsonObject = { output_format: 'hex', ...run.input, model: run.model, stream: false };
  const response = await submit(upstream, '/v1/t2a_v2', json, { signal, answer_bytes_max: speech_bytes_max }, true);
  const audio = textIn(objectIn(response, 'data'), 'audio');
  if (audio === undefined) throw new Error('the answer has no audio');
  const characters = countIn(objectIn(response, 'extra_info'), 'usage_characters');
  const units = characters === undefined ? {} : { units: { character: String(characters) } };
  return { phase: 'done', files: [audioFileOf(audio)], ...units };
}

function audioFileOf(audio: string): RunFile {
  if (/^https?:/i.test(audio)) return { url: audio };
  const bytes = Buffer.from(audio, 'hex');
  if (bytes.length * 2 !== audio.length) throw new Error('the audio is not written in hex');
  return { bytes };
}
