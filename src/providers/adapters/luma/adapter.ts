import { isObject, type Json, type JsonObject, type ProviderConfig } from '../../../catalog/model.ts';
import { filesAt, idIn, runIdIn, statusIn, unanswered } from '../../http/answers.ts';
import { openUpstream, type Upstream } from '../../http/http.ts';
import { inlineMedia, withoutHollow } from '../../http/inline-media.ts';
import { optionProblems } from '../../http/options.ts';
import { NotStarted, type Adapter, type AdapterParts, type Provider } from '../../provider.ts';
import type { RunContext, RunRequest, RunState } from '../../provider.ts';
import { objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { goingOn, readPollState, unknownRun, type PollInterval, type PollState } from '../../http/poll-state.ts';

/** The API of Ray 3 and Uni. Its predecessor, Dream Machine, is told by the path of `base_url`. */
const default_base_url = 'https://agents.lumalabs.ai/v1';
const dream_machine = /\/dream-machine(\/|$)/;

const calls = { per_minute: 1_200, burst: 60 };

const poll_intervals: Record<'image' | 'video', PollInterval> = {
  image: { min_ms: 1_000, max_ms: 5_000 },
  video: { min_ms: 3_000, max_ms: 10_000 },
};

const moderation = /moderat|content (policy|guidelines)|nsfw|inappropriate/i;
const callers = /^(image_too_large|unsupported_format|corrupt_input|invalid_request)/;

/**
 * Luma. With its present API (`base_url` absent, or `https://agents.lumalabs.ai/v1`) `upstream_model` is `ray-3.2`,
 * `uni-1` or `uni-1-max`, and the input the rest of the body: prompt, aspect_ratio, type (by itself video, image, or
 * image_edit with `source`; also video_edit, video_reframe), output_format, style, web_search, image_ref (a list of
 * `{ url }`), source (`{ url }`), video: { resolution, duration ("5s"), loop, hdr, start_frame: { url }, end_frame:
 * { url }, keyframes, keyframe_indexes, edit }.
 * With Dream Machine (`base_url: https://api.lumalabs.ai/dream-machine/v1`) it is `ray-2`, `ray-flash-2`, `photon-1`
 * or `photon-flash-1`: prompt, aspect_ratio, resolution, duration ("5s"), loop, concepts, keyframes: { frame0: { type:
 * image, url }, frame1 }; for images format, image_ref, style_ref, character_ref, modify_image_ref. Its files are
 * links. What should carry a `url` and has none is left out, so a mapping may name files that the caller need not
 * give.
 */
export const luma = {
  serves: (kind) => kind === 'image' || kind === 'video',
  limits: { label: 'Luma' },
  checkOptions: (options) => optionProblems(options, {}),
  open,
} satisfies Adapter;

/** Differences of the two APIs. */
type Dialect = {
  media: 'link' | 'either';
  path(run: RunRequest): string;
  body(run: RunRequest): JsonObject;
  links(answer: JsonObject): (string | undefined)[];
};

function open(config: ProviderConfig, parts: AdapterParts): Provider {
  const base_url = config.base_url ?? default_base_url;
  const dialect = dream_machine.test(new URL(base_url).pathname) ? dreams : agents;
  const headers = {
    accept: 'application/json',
    ...(config.api_key !== undefined && { authorization: `Bearer ${config.api_key}` }),
  };
  const upstream = openUpstream({ ...config, base_url }, parts, { headers, rate_limit: calls });
  return {
    media: dialect.media,
    start: (run, signal) => start(upstream, dialect, run, signal),
    poll: async (run, ref, signal) => poll(upstream, dialect, run, readPollState(ref), signal),
    close: () => upstream.close(),
  };
}

async function start(upstream: Upstream, dialect: Dialect, run: RunRequest, signal: AbortSignal): Promise<RunState> {
  const answer = await upstream.call({ method: 'POST', path: dialect.path(run), json: dialect.body(run), signal });
  if (!answer.ok) throw upstream.refusal(answer, { moderation });
  const state = { id: runIdIn(answer.object(), 'id'), started_at_ms: run.now_ms };
  return goingOn(state, 'waiting', run.now_ms, pollIntervalOf(run));
}

function pollIntervalOf({ kind }: RunContext): PollInterval {
  return kind === 'video' ? poll_intervals.video : poll_intervals.image;
}

async function poll(
  upstream: Upstream,
  dialect: Dialect,
  run: RunContext,
  state: PollState,
  signal: AbortSignal,
): Promise<RunState> {
  const path = `/generations/${encodeURIComponent(idIn(state, 'id') ?? '')}`;
  const answer = await upstream.call({ method: 'GET', path, signal });
  if (answer.status === 404) return unknownRun(state, run.now_ms, pollIntervalOf(run));
  if (!answer.ok) throw unanswered(answer);
  const response = answer.object();
  switch (statusIn(response, 'state')) {
    case 'queued':
    case 'pending':
      return goingOn(state, 'waiting', run.now_ms, pollIntervalOf(run));
    case 'completed':
      return { phase: 'done', files: filesAt(dialect.links(response)) };
    case 'failed':
      return failureOf(upstream, state, response);
    case '':
      throw new Error('the answer to the poll has no state');
    default:
      return goingOn(state, 'running', run.now_ms, pollIntervalOf(run)); // dreaming, processing
  }
}

function failureOf(upstream: Upstream, state: PollState, answer: JsonObject): RunState {
  const code = textIn(answer, 'failure_code') ?? '';
  if (code === 'rate_limited' && state.seen_running !== true) throw new NotStarted('rate_limited', `failed: ${code}`);
  return upstream.failure({ code, message: textIn(answer, 'failure_reason') ?? '' }, { moderation, callers });
}

const agents: Dialect = {
  media: 'either',
  path: () => '/generations',
  body: ({ kind, model, input }) => {
    const body = withMediaTypes(withoutHollow(input, isHollow));
    const type = kind === 'video' ? 'video' : 'source' in body ? 'image_edit' : 'image';
    return { type, ...body, model };
  },
  links: (answer) => objectsIn(answer, 'output').map((item) => textIn(item, 'url')),
};

const dreams: Dialect = {
  media: 'link',
  path: ({ kind }) => `/generations/${kind}`,
  body: ({ model, input, events_url }) => ({
    ...withoutHollow(input, isHollow),
    model,
    ...(events_url !== undefined && { callback_url: events_url }),
  }),
  links: (answer) => {
    const assets = objectIn(answer, 'assets');
    return [textIn(assets, 'video') ?? textIn(assets, 'image')];
  },
};

/** Tells whether an object that should carry a link has none. */
function isHollow(object: JsonObject): boolean {
  return Object.entries(object).every(([name, value]) => name === 'weight' || (name === 'type' && value === 'image'));
}

/** A file that is in the request itself is `{ data, media_type }`, not `{ url }`. */
function withMediaTypes(object: JsonObject): JsonObject {
  const { url, ...others } = object;
  const members = Object.entries(others).map(([name, value]): [string, Json] => [name, mediaTyped(value)]);
  const file = inlineMedia(url);
  const reference: JsonObject = file
    ? { data: file.bytes.toString('base64'), media_type: file.content_type }
    : { ...(url !== undefined && { url }) };
  return { ...Object.fromEntries(members), ...reference };
}

function mediaTyped(value: Json): Json {
  if (Array.isArray(value)) return value.map(mediaTyped);
  return isObject(value) ? withMediaTypes(value) : value;
}
