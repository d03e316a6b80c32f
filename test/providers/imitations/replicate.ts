import type { JsonObject } from '../../../src/catalog/model.ts';
import { sampleFile, startImitation, type ReceivedRequest, type Imitation, type Role } from './imitation.ts';

const id_form = '[a-z0-9]{26}';
const poll_form = new RegExp(`^/v1/predictions/(${id_form})$`);
const cancel_form = new RegExp(`^/v1/predictions/(${id_form})/cancel$`);
const submit_form = /^\/v1\/(?:predictions|(?:models|deployments)\/[^/]+\/[^/]+\/predictions)$/;

/** Replicate: predictions that start, work, and end with links to files. */
export async function startReplicate(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }) => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'image/webp' } };
    if (request.role === 'other')
      return { status: 404, json: { detail: 'The requested resource could not be found.' } };
    if (request.role === 'submit') {
      const id = `run${String(polls.size).padStart(23, '0')}`;
      polls.set(id, 0);
      return { status: 201, json: prediction(url, id, { status: 'starting', input: request.json['input'] ?? {} }) };
    }
    const id = (poll_form.exec(request.path) ?? cancel_form.exec(request.path))?.[1] ?? '';
    if (request.role === 'cancel') return { json: prediction(url, id, { status: 'canceled' }) };
    const polled = (polls.get(id) ?? 0) + 1;
    polls.set(id, polled);
    if (polled === 1) return { json: prediction(url, id, { status: 'starting' }) };
    return { json: prediction(url, id, polled === 2 ? { status: 'processing', started_at: seen } : done(url)) };
  };
  return startImitation({ roleOf, answer }, now);
}

const seen = '2026-08-01T10:00:01.000000Z';

function done(url: string): JsonObject {
  const metrics = { predict_time: 2.5, total_time: 3.1 };
  return { status: 'succeeded', started_at: seen, completed_at: seen, output: [`${url}/delivery/out-0.png`], metrics };
}

function roleOf({ method, path }: { method: string; path: string }): Role {
  if (method === 'POST' && submit_form.test(path)) return 'submit';
  if (method === 'GET' && poll_form.test(path)) return 'poll';
  if (method === 'POST' && cancel_form.test(path)) return 'cancel';
  return method === 'GET' && path.startsWith('/delivery/') ? 'file' : 'other';
}

/** A prediction as every call answers it. */
export function prediction(url: string, id: string, more: JsonObject): JsonObject {
  return {
    id,
    model: 'acme/painter',
    version: 'hidden',
    input: { prompt: 'A quiet bay' },
    output: null,
    error: null,
    logs: '',
    metrics: {},
    data_removed: false,
    created_at: '2026-08-01T10:00:00.000000Z',
    started_at: null,
    completed_at: null,
    source: 'api',
    urls: { get: `${url}/v1/predictions/${id}`, cancel: `${url}/v1/predictions/${id}/cancel`, web: `${url}/p/${id}` },
    ...more,
  };
}
