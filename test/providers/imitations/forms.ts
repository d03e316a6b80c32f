import { createHash, createHmac } from 'node:crypto';
import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

/** A provider that takes a form with a file, and answers with the image itself beside a reason. */
export async function startStudio(now?: () => number): Promise<Imitation> {
  const file = (await sampleFile('image')).toString('base64');
  const answer = (request: ReceivedRequest): Reply => {
    const has_image = partsOf(request).some(({ name, filename }) => name === 'image' && filename !== undefined);
    if (request.role === 'other' || !has_image || textsOf(request)['prompt'] === undefined)
      return { status: 400, json: { errors: ['prompt and image are required'] } };
    return { json: { image: file, finish_reason: 'SUCCESS', seed: 1 }, headers: { 'x-credits': '3' } };
  };
  const roleOf = ({ method, path }: { method: string; path: string }): Role =>
    method === 'POST' && path === '/v2/edit-3/edit' ? 'submit' : 'other';
  return startImitation({ roleOf, answer }, now);
}

/** A provider that takes files first, wants every request signed, and names its files. */
export async function startVoices(secret: string, now?: () => number): Promise<Imitation> {
  const file = await sampleFile('audio');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'audio/wav' } };
    if (!isSigned(request, secret, url)) return { status: 401, json: { reason: 'bad signature' } };
    if (request.role === 'other') return { status: 404, json: {} };
    if (request.role === 'upload') return { json: { file_id: `file-${partsOf(request).length}` } };
    if (request.role === 'submit') {
      const id = `s${polls.size}`;
      polls.set(id, 0);
      return { json: { id, state: 'queued', poll_token: `t-${id}` } };
    }
    const id = request.path.split('/').at(-1) ?? '';
    if (request.role === 'cancel') return { json: {} };
    if (request.headers['x-poll-token'] !== `t-${id}`) return { status: 401, json: {} };
    const polled = (polls.get(id) ?? 0) + 1;
    polls.set(id, polled);
    if (polled < 2) return { json: { id, state: 'working' } };
    return { json: { id, state: 'ready', tracks: [{ folder: 'out/1', name: `${id} final.wav`, type: 'wav' }] } };
  };
  return startImitation({ roleOf: roleOfVoices, answer }, now);
}

function roleOfVoices({ method, path }: { method: string; path: string }): Role {
  if (path === '/v1/files' && method === 'POST') return 'upload';
  if (/^\/v1\/files\/out\/1\/s\d+%20final\.wav$/.test(path)) return 'file';
  if (path === '/v1/regions/us/speech' && method === 'POST') return 'submit';
  if (!/^\/v1\/regions\/us\/speech\/\w+$/.test(path)) return 'other';
  return method === 'DELETE' ? 'cancel' : method === 'GET' ? 'poll' : 'other';
}

function isSigned({ method, path, headers, body }: ReceivedRequest, secret: string, url: string): boolean {
  const [time, nonce] = [String(headers['x-time']), String(headers['x-nonce'])];
  const digest = createHash('sha256').update(body).digest('hex');
  const text = `${method}\n${path}\n\n${time}\n${nonce}\n${digest}`;
  const expected = createHmac('sha256', secret).update(text).digest('base64');
  return url.endsWith(String(headers.host)) && headers['x-signature'] === `v1=${expected}`;
}
