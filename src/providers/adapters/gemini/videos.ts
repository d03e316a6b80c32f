import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { runIdIn, unanswered } from '../../http/answers.ts';
import type { Upstream } from '../../http/http.ts';
import type { RunContext, RunFile, RunRequest, RunState } from '../../provider.ts';
import { objectIn, objectsIn, textIn, textsOf } from '../../http/reading.ts';
import { goingOn, readPollState, unknownRun } from '../../http/poll-state.ts';
import { media_hints } from './hints.ts';
import { modelPath } from './paths.ts';
import { bytesIn, inlineImage, otherFields, pathOf, type GeminiUpstream, type Work } from './work.ts';

/** As often as the official clients ask. */
const poll_interval = { min_ms: 10_000, max_ms: 20_000 };

/** Submits may work while every question after them is answered 403, or 404, for minutes. */
const missing_max_ms = 300_000;

/** Begins a video: an operation that is asked for until it is over. */
export const startVideos: Work = async (upstream, run, signal) => {
  const answer = await upstream.call({ method: 'POST', path: pathOf(upstream, run), json: bodyOf(run), signal });
  if (!answer.ok) return answer;
  const operation = runIdIn(answer.object(), 'name');
  if (!is_operation.test(operation)) throw new Error('the operation has a name that is none');
  return goingOn({ operation, started_at_ms: run.now_ms }, 'waiting', run.now_ms, poll_interval);
};

/** It becomes a part of a path. */
const is_operation = /^(?:[\w-][\w.-]*\/)*operations\/[\w-][\w.-]*$/;

const instance_fields = ['prompt', 'image', 'lastFrame', 'referenceImages'];

function bodyOf({ input, options, events_url }: RunRequest): JsonObject {
  const { prompt, image, lastFrame, referenceImages } = input;
  const references = textsOf(referenceImages).map((reference): JsonObject => ({
    image: inlineImage('referenceImages', reference),
    referenceType: 'asset',
  }));
  const instance: JsonObject = {
    ...(typeof prompt === 'string' && { prompt }),
    ...(typeof image === 'string' && { image: inlineImage('image', image) }),
    ...(typeof lastFrame === 'string' && { lastFrame: inlineImage('lastFrame', lastFrame) }),
    ...(references.length > 0 && { referenceImages: references }),
  };
  return {
    instances: [instance],
    parameters: parametersOf(otherFields(input, instance_fields)),
    ...(options['webhooks'] === true && events_url !== undefined && { webhookConfig: { uris: [events_url] } }),
  };
}

/** The length is a number to it; a route may have it as a text. */
function parametersOf(fields: JsonObject): JsonObject {
  const { durationSeconds, ...others } = fields;
  return durationSeconds === undefined ? others : { ...others, durationSeconds: Number(durationSeconds) };
}

/** Polls a video. The upstream does not tell waiting from running: what answers is at work. */
export async function pollVideos(
  upstream: GeminiUpstream,
  run: RunContext,
  ref: Json,
  signal: AbortSignal,
): Promise<RunState> {
  const { now_ms } = run;
  const state = readPollState(ref);
  const answer = await upstream.call({ ...questionOf(upstream, run, textIn(state, 'operation') ?? ''), signal });
  if (answer.status === 403 || answer.status === 404) return unknownRun(state, now_ms, poll_interval, missing_max_ms);
  if (!answer.ok) throw unanswered(answer);
  const operation = answer.object();
  if (operation['done'] !== true) return goingOn(state, 'running', now_ms, poll_interval);
  const { error } = operation;
  if (!isObject(error)) return readVideos(upstream, objectIn(operation, 'response'));
  return upstream.failure({ code: String(error['code'] ?? ''), message: textIn(error, 'message') ?? '' }, media_hints);
}

/** Videos of Vertex AI are in the answer, in base64. */
const answer_bytes_max = 268_435_456;

/**
 * Returns the request for an operation. Vertex AI answers it at the model, to a POST with its name; a GET of the name
 * finds nothing there (@google/genai, getVideosOperation, November 2026).
 */
function questionOf({ prefix, is_vertex }: GeminiUpstream, { model }: RunContext, operation: string) {
  if (!is_vertex) return { method: 'GET', path: `${prefix}/${operation}` } as const;
  const path = `${prefix}/${modelPath(model)}:fetchPredictOperation`;
  return { method: 'POST', path, json: { operationName: operation }, is_read: true, answer_bytes_max } as const;
}

/** Videos that were found unfit are counted, with reasons; the others are a result. */
function readVideos(upstream: GeminiUpstream, response: JsonObject): RunState {
  const result = isObject(response['generateVideoResponse']) ? response['generateVideoResponse'] : response;
  const samples = [...objectsIn(result, 'generatedSamples'), ...objectsIn(result, 'generatedVideos')];
  const videos = [...samples.map((sample) => objectIn(sample, 'video')), ...objectsIn(result, 'videos')];
  const files = videos.flatMap((video) => fileOf(upstream, video));
  if (files.length > 0) return { phase: 'done', files };
  if (videos.some((video) => textIn(video, 'gcsUri') !== undefined)) return upstream.failure({ message: in_bucket });
  const filtered = Number(result['raiMediaFilteredCount'] ?? 0);
  const [reason = ''] = textsOf(result['raiMediaFilteredReasons']);
  if (filtered > 0 || reason !== '') return upstream.failure({ code: 'moderation', message: reason });
  return { phase: 'done', files: [] };
}

/** For the operator: a route of Vertex AI whose input has `storageUri`. */
const in_bucket = 'The video lies in a bucket, from where it is not fetched: leave storageUri out of the input.';

/** Videos are downloaded with the key, which goes to the upstream's own hosts only. */
function fileOf({ link, key }: Pick<Upstream, 'link'> & Pick<GeminiUpstream, 'key'>, video: JsonObject): RunFile[] {
  const url = textIn(video, 'uri');
  const bytes = bytesIn(video, 'encodedVideo') ?? bytesIn(video, 'bytesBase64Encoded');
  if (url === undefined) return bytes ? [{ bytes }] : [];
  const own = link(url);
  return own === undefined ? [{ url }] : [{ url: own, credentials: { origin: new URL(own).origin, headers: key } }];
}
