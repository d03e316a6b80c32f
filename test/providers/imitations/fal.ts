import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';

const request_form = /^\/(?:(?:workflows|comfy)\/)?[^/]+\/[^/]+\/requests\/([0-9a-f-]{36})(\/status|\/cancel|)$/;

/** fal's queue: requests that wait, are worked on, are completed, and whose result is asked for elsewhere. */
export async function startFal(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'image/png' } };
    if (request.role === 'other') return { status: 404, json: { detail: 'Application not found' } };
    if (request.role === 'submit') {
      const id = `80e732af-660e-45cd-bd63-${String(polls.size).padStart(12, '0')}`;
      polls.set(id, 0);
      return { json: submitted(url, request.path, id) };
    }
    const id = request_form.exec(request.path)?.[1] ?? '';
    if (request.role === 'cancel') return { status: 202, json: { status: 'CANCELLATION_REQUESTED' } };
    if (request.role === 'result') {
      const images = [{ url: `${url}/files/out.png`, width: 64, height: 64, content_type: 'image/png' }];
      return { json: { images, timings: {}, has_nsfw_concepts: [false], prompt: 'https://example.com is my prompt' } };
    }
    const polled = (polls.get(id) ?? 0) + 1;
    polls.set(id, polled);
    if (polled === 1) return { status: 202, json: { status: 'IN_QUEUE', request_id: id, queue_position: 3 } };
    if (polled === 2) return { status: 202, json: { status: 'IN_PROGRESS', request_id: id, logs: null } };
    return { json: { status: 'COMPLETED', request_id: id, metrics: { inference_time: 1.5 }, logs: null } };
  };
  return startImitation({ roleOf, answer }, now);
}

/** The answer to a submit: its links leave out what stands behind the name of the app. */
export function submitted(url: string, path: string, id: string) {
  const app = path.split('/').slice(0, 3).join('/');
  const place = `${url}${app}/requests/${id}`;
  return {
    status: 'IN_QUEUE',
    request_id: id,
    queue_position: 3,
    response_url: place,
    status_url: `${place}/status`,
    cancel_url: `${place}/cancel`,
  };
}

function roleOf({ method, path }: { method: string; path: string }): Role {
  const end = request_form.exec(path)?.[2];
  if (end === undefined) {
    if (method === 'GET' && path.startsWith('/files/')) return 'file';
    return method === 'POST' && /^\/[^/]+\/[^/]+/.test(path) ? 'submit' : 'other';
  }
  if (method === 'PUT') return end === '/cancel' ? 'cancel' : 'other';
  if (method !== 'GET') return 'other';
  return end === '/status' ? 'poll' : end === '' ? 'result' : 'other';
}
