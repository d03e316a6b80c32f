import type { JsonObject } from '../../../src/catalog/model.ts';
import { isObject } from '../../../src/catalog/model.ts';
import { wav } from '../../storage/samples.ts';
import { sampleFile, startImitation, type ReceivedRequest, type Imitation, type Reply } from './imitation.ts';

const collection = /^\/(?:v1beta|v1beta1\/projects\/[\w-]+\/locations\/[\w-]+)\/interactions$/;
const one = /^\/(?:v1beta|v1beta1\/projects\/[\w-]+\/locations\/[\w-]+)\/interactions\/([\w-]+)$/;
const cancel = /\/interactions\/([\w-]+)\/cancel$/;

/**
 * Google's Interactions API by the types of `@google/genai` 3.3.0 (`CreateModelInteraction`, `Interaction`): what runs in
 * the background is queued, at work, completed; a video is downloaded with the key, by a redirect.
 */
export async function startGeminiInteractions(now?: () => number): Promise<Imitation> {
  const video = await sampleFile('video');
  const runs = new Map<string, { polls: number; request: JsonObject }>();
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (path.startsWith('/v1beta/files/') || path.startsWith('/stored/')) return 'file';
        if (method === 'POST' && collection.test(path)) return 'submit';
        if (method === 'POST' && cancel.test(path)) return 'cancel';
        return method === 'GET' && one.test(path) ? 'poll' : 'other';
      },
      answer: (polls, { url }) => {
        if (polls.role === 'file') return fileOf(polls, video);
        if (polls.role === 'other') return refusal(404, 'not_found', 'There is no such method.');
        if (polls.headers['x-goog-api-key'] === undefined) return refusal(401, 'unauthenticated', 'No key.');
        if (polls.role === 'submit') {
          const reason = mistakeIn(polls.json);
          if (reason !== undefined) return refusal(400, 'invalid_request', reason);
          const id = `v1_Chd${runs.size}`;
          runs.set(id, { polls: 0, request: polls.json });
          if (polls.json['background'] === true) return interaction(id, 'queued');
          return interaction(id, 'completed', outputOf(polls.json, video, url));
        }
        const id = (polls.role === 'cancel' ? cancel : one).exec(polls.path)?.[1] ?? '';
        const run = runs.get(id);
        if (!run) return refusal(400, 'invalid_request', `Invalid interaction name: ${id}`);
        if (polls.role === 'cancel') return interaction(id, 'cancelled');
        run.polls += 1;
        if (run.polls < 3) return interaction(id, run.polls === 1 ? 'queued' : 'in_progress');
        return interaction(id, 'completed', outputOf(run.request, video, url));
      },
    },
    now,
  );
}

/** The file of a link: with the key, `alt=media`, and by a redirect to where no key is wanted. */
function fileOf({ path, query, headers }: ReceivedRequest, video: Buffer): Reply {
  if (path.startsWith('/stored/')) return { bytes: video };
  if (headers['x-goog-api-key'] === undefined) return refusal(403, 'permission_denied', 'No key.');
  if (query['alt'] !== 'media') return { json: { name: 'files/f1', state: 'ACTIVE' } };
  return { status: 302, headers: { location: '/stored/f1' } };
}

/** The reason for which the API would refuse a request. */
function mistakeIn({ model, input, response_format, generation_config, background, store }: JsonObject) {
  if (typeof model !== 'string' || model === '') return 'model is required';
  if (input === undefined || input === '') return 'input is required';
  if (!isObject(response_format)) return 'response_format is required';
  if (background === true && store === false) return 'background requires store';
  const { type, duration, resolution = '720p' } = response_format;
  if (type === 'video' && duration !== undefined && !/^\d+(?:\.\d+)?s$/.test(String(duration)))
    return 'Invalid value at response_format.duration';
  if (type === 'video' && !['360p', '720p', '1080p', '4k'].includes(String(resolution))) return 'resolution';
  const fields = ['speech_config', 'video_config', 'seed', 'max_output_tokens', 'thinking_level', 'stop_sequences'];
  const unknown = Object.keys(isObject(generation_config) ? generation_config : {}).find(
    (name) => !fields.includes(name),
  );
  return unknown === undefined ? undefined : `Unknown name "${unknown}" at generation_config`;
}

function outputOf(request: JsonObject, video: Buffer, url: string): object {
  const format = isObject(request['response_format']) ? request['response_format'] : {};
  if (format['type'] === 'audio') {
    const content = { type: 'audio', data: wav(1).toString('base64'), mime_type: 'audio/wav' };
    return completed([content], usageOf('audio', 12, 32));
  }
  const content =
    format['delivery'] === 'uri'
      ? { type: 'video', uri: `${url}/v1beta/files/f1:download`, mime_type: 'video/mp4' }
      : { type: 'video', data: video.toString('base64'), mime_type: 'video/mp4' };
  return completed([content], usageOf('video', 20, 5_792));
}

/** An interaction that has its outputs, after the thoughts of the model. */
export function completed(content: object[], usage: object = usageOf('video', 20, 5_792)): object {
  return {
    steps: [
      { type: 'thought', signature: 'c2ln' },
      { type: 'model_output', content },
    ],
    usage,
  };
}

export function usageOf(modality: 'audio' | 'video', input: number, output: number): object {
  return {
    total_input_tokens: input,
    input_tokens_by_modality: [{ modality: 'text', tokens: input }],
    total_output_tokens: output,
    output_tokens_by_modality: [{ modality, tokens: output }],
    total_thought_tokens: 10,
    total_cached_tokens: 0,
    total_tokens: input + output + 10,
  };
}

export function interaction(id: string, status: string, more: object = {}): Reply {
  const created = '2026-11-28T04:00:00Z';
  return { json: { id, object: 'interaction', status, created, updated: created, model: 'x', ...more } };
}

/** An error of the API itself; Google's front has numbers for codes, and a status. */
export function refusal(status: number, code: string, message: string): Reply {
  return { status, json: { error: { code, message } } };
}
