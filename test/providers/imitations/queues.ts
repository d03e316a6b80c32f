import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';

/** A provider whose answers have a code beside what they are about. */
export async function startPredictions(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('video');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'video/mp4' } };
    if (request.role === 'other') return { status: 404, json: { code: 404, message: 'no such path' } };
    if (request.role === 'submit') {
      const id = `r${polls.size}`;
      polls.set(id, 0);
      return { json: { code: 200, message: 'success', data: { id, status: 'created', outputs: [] } } };
    }
    const id = request.path.split('/')[4] ?? '';
    if (request.role === 'cancel')
      return { json: { code: 200, message: 'success', data: { id, status: 'cancelled' } } };
    const polled = (polls.get(id) ?? 0) + 1;
    polls.set(id, polled);
    const data =
      polled < 2 ? { id, status: 'processing' } : { id, status: 'completed', outputs: [`${url}/files/${id}`] };
    return { json: { code: 200, message: 'success', data } };
  };
  return startImitation({ roleOf: roleOfPrediction, answer }, now);
}

function roleOfPrediction({ method, path }: { method: string; path: string }): Role {
  if (path.startsWith('/files/')) return 'file';
  if (/^\/api\/v3\/predictions\/\w+\/result$/.test(path)) return method === 'GET' ? 'poll' : 'other';
  if (/^\/api\/v3\/predictions\/\w+$/.test(path)) return method === 'DELETE' ? 'cancel' : 'other';
  return method === 'POST' && path.startsWith('/api/v3/') ? 'submit' : 'other';
}

/** A provider that answers everything with 200, and puts JSON into texts. */
export async function startJobs(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const polls = new Map<string, number>();
  const answer = (request: ReceivedRequest, { url }: { url: string }): Reply => {
    if (request.role === 'file') return { bytes: file, headers: { 'content-type': 'image/png' } };
    if (request.role === 'other') return { json: { code: 404, msg: 'Not Found', data: null } };
    if (request.role === 'submit') {
      const taskId = `j${polls.size}`;
      polls.set(taskId, 0);
      return { json: { code: 200, msg: 'success', data: { taskId } } };
    }
    const taskId = request.query['taskId'] ?? '';
    const polled = (polls.get(taskId) ?? 0) + 1;
    polls.set(taskId, polled);
    if (polled < 2)
      return { json: { code: 200, msg: 'success', data: { taskId, state: 'generating', resultJson: '' } } };
    const resultJson = JSON.stringify({ resultUrls: [`${url}/files/${taskId}`] });
    return { json: { code: 200, msg: 'success', data: { taskId, state: 'success', resultJson, creditsConsumed: 3 } } };
  };
  return startImitation({ roleOf: roleOfJob, answer }, now);
}

function roleOfJob({ method, path }: { method: string; path: string }): Role {
  if (path.startsWith('/files/')) return 'file';
  if (path === '/api/v1/jobs/createTask') return method === 'POST' ? 'submit' : 'other';
  return path === '/api/v1/jobs/recordInfo' && method === 'GET' ? 'poll' : 'other';
}
