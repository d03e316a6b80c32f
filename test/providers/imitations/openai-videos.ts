import type { Video } from 'openai-7/resources/videos';
import { sampleFile, startImitation, type Imitation, type Reply } from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

/** A video as the official client reads it; its members are held against the client's own type. */
export function video(status: Video['status'], more: Partial<Video> = {}, id = 'video_1'): Video {
  return {
    id,
    object: 'video',
    model: 'acme/film',
    status,
    progress: status === 'completed' ? 100 : 0,
    created_at: 1_795_000_000,
    completed_at: status === 'completed' ? 1_795_000_060 : null,
    expires_at: null,
    prompt: 'A bay',
    remixed_from_video_id: null,
    seconds: '4',
    size: '1280x720',
    error: null,
    ...more,
  };
}

const missing: Reply = { status: 404, json: { error: { message: 'Video not found', code: null, param: null } } };

/** A server of `/v1/videos`: queued, at work, done, and its file for whoever has the key. */
export async function startVideos(now?: () => number): Promise<Imitation> {
  const clip = await sampleFile('video');
  const polls = new Map<string, number>();
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (method === 'POST' && path === '/v1/videos') return 'submit';
        if (method !== 'GET' || !path.startsWith('/v1/videos/')) return 'other';
        return path.endsWith('/content') ? 'file' : 'poll';
      },
      answer: (request) => {
        const { role, path, headers, json } = request;
        if (!/^Bearer ./.test(headers.authorization ?? ''))
          return { status: 401, json: { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } } };
        if (role === 'submit') {
          const { prompt } = partsOf(request).length > 0 ? textsOf(request) : json;
          if (typeof prompt !== 'string')
            return { status: 400, json: { error: { message: 'prompt is required', type: 'invalid_request_error' } } };
          const id = `video_${polls.size + 1}`;
          polls.set(id, 0);
          return { json: video('queued', {}, id) };
        }
        const id = path.split('/')[3] ?? '';
        const count = polls.get(id);
        if (count === undefined || role === 'other') return missing;
        if (role === 'file') return { bytes: clip, headers: { 'content-type': 'video/mp4' } };
        polls.set(id, count + 1);
        return { json: video(count === 0 ? 'queued' : count === 1 ? 'in_progress' : 'completed', {}, id) };
      },
    },
    now,
  );
}
