import type { Json, JsonObject, ProviderConfig } from '../../../catalog/model.ts';
import { idIn, runIdIn, statusIn, unanswered } from '../../http/answers.ts';
import type { Upstream, UpstreamRequest } from '../../http/http.ts';
import { appendFields, appendFile, fileOf } from '../../http/multipart.ts';
import { ownTexts } from '../../http/own-texts.ts';
import { goingOn, readPollState, unknownRun } from '../../http/poll-state.ts';
import { objectIn, textIn, textsOf } from '../../http/reading.ts';
import type { RunContext, RunFile, RunRequest, RunState } from '../../provider.ts';
import { bodyOf, type Work } from './work.ts';

/**
 * Videos in the shape of OpenAI's `/videos` (openai 7, resources/videos; vLLM-Omni, "Videos API" and
 * SGLang, video_api.py, read on 2026-11-28): a job with an id, asked for until it is over, and its file below it.
 */

const poll_interval = { min_ms: 2_000, max_ms: 10_000 };

/** The key may ask as often as ten videos a second are polled. */
export const video_calls = { per_minute: 600, burst: 60 };

/** Codes of runs that failed for what they were given. */
const callers = /^invalid_/;

/** Begins a video. */
export const startVideo: Work = async (upstream, run, signal) => {
  const answer = await upstream.call({ method: 'POST', path: '/videos', ...bodyIn(run), signal });
  if (!answer.ok) return answer;
  const state = { id: runIdIn(answer.object(), 'id'), started_at_ms: run.now_ms };
  return goingOn(state, 'waiting', run.now_ms, poll_interval);
};

/** Returns the form that the official clients send, or JSON where the route says so: files are data URLs in it. */
function bodyIn(run: RunRequest): Pick<UpstreamRequest, 'json' | 'form'> {
  const fields = bodyOf(run, ['input_reference']);
  const { seconds } = fields;
  const texts = typeof seconds === 'number' ? { ...fields, seconds: String(seconds) } : fields;
  const [reference] = textsOf(run.input['input_reference']);
  if (run.options['body_as'] === 'json') return { json: { ...texts, ...referenceIn(reference) } };
  const form = new FormData();
  appendFields(form, texts);
  if (reference !== undefined) appendFile(form, 'input_reference', 'input_reference', reference);
  return { form };
}

function referenceIn(reference: string | undefined): JsonObject {
  if (reference === undefined) return {};
  fileOf('input_reference', reference); // throws if it is none
  return { input_reference: { image_url: reference } };
}

/** Asks for the state of a video. */
export async function pollVideo(
  upstream: Upstream,
  config: ProviderConfig & { base_url: string },
  { now_ms }: RunContext,
  ref: Json,
  signal: AbortSignal,
): Promise<RunState> {
  const state = readPollState(ref);
  const path = `/videos/${encodeURIComponent(idIn(state, 'id') ?? '')}`;
  const answer = await upstream.call({ method: 'GET', path, signal });
  if (answer.status === 404) return unknownRun(state, now_ms, poll_interval);
  if (!answer.ok) throw unanswered(answer);
  const video = answer.object();
  switch (statusIn(video, 'status')) {
    case 'queued':
      return goingOn(state, 'waiting', now_ms, poll_interval);
    case 'completed':
      return { phase: 'done', files: [await contentOf(upstream, config, `${path}/content`, signal)] };
    case 'failed': {
      const error = objectIn(video, 'error');
      return upstream.failure(
        { code: textIn(error, 'code') ?? '', message: textIn(error, 'message') ?? '' },
        { callers },
      );
    }
    case '':
      throw new Error('the answer to the poll has no status');
    default:
      return goingOn(state, 'running', now_ms, poll_interval); // in_progress
  }
}

const content_bytes_max = 268_435_456;

/** The file: a link that takes the key. A provider that signs its requests, or has tokens, is asked for it here. */
async function contentOf(
  upstream: Upstream,
  config: ProviderConfig & { base_url: string },
  path: string,
  signal: AbortSignal,
): Promise<RunFile> {
  if (config.credentials) {
    const answer = await upstream.call({ method: 'GET', path, signal, answer_bytes_max: content_bytes_max });
    if (!answer.ok) throw unanswered(answer);
    return { bytes: answer.bytes };
  }
  const texts = ownTexts(config);
  const key: Record<string, string> = config.api_key === undefined ? {} : { authorization: `Bearer ${config.api_key}` };
  const url = config.base_url.replace(/\/+$/, '') + texts.path(path);
  return { url, credentials: { origin: new URL(url).origin, headers: texts.headers(key) } };
}
