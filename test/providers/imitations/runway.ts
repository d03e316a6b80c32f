import { sampleFile, startImitation, type Imitation } from './imitation.ts';

const endpoints = new Set([
  'text_to_video',
  'image_to_video',
  'video_to_video',
  'text_to_image',
  'text_to_speech',
  'sound_effect',
  'character_performance',
]);

/** Runway: a version in every call, a queue before the work, links signed by another host, a delete that cancels. */
export async function startRunway(now?: () => number): Promise<Imitation> {
  const video = await sampleFile('video');
  const polls = new Map<string, number>();
  let submits = 0;
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (method === 'POST' && endpoints.has(path.replace('/v1/', ''))) return 'submit';
        if (path.startsWith('/artifacts/')) return 'file';
        if (!path.startsWith('/v1/tasks/')) return 'other';
        return method === 'GET' ? 'poll' : method === 'DELETE' ? 'cancel' : 'other';
      },
      answer: ({ role, path, headers }, { url }) => {
        if (role === 'file') return { headers: { 'content-type': 'video/mp4' }, bytes: video };
        if (headers['x-runway-version'] !== '2024-11-06')
          return { status: 400, json: { error: 'You must supply the X-Runway-Version header.' } };
        if (headers.authorization === undefined) return { status: 401, json: { error: 'Unauthorized' } };
        if (role === 'submit') return { json: { id: `17f20503-6c24-4c16-946b-${++submits}` } };
        if (role === 'cancel') return { status: 204 };
        const id = path.slice('/v1/tasks/'.length);
        const polls_so_far = (polls.get(id) ?? 0) + 1;
        polls.set(id, polls_so_far);
        const task = { id, createdAt: '2026-08-01T12:00:00.000Z' };
        if (polls_so_far === 1) return { json: { ...task, status: 'PENDING' } };
        if (polls_so_far === 2) return { json: { ...task, status: 'RUNNING', progress: 0.4 } };
        return {
          json: { ...task, status: 'SUCCEEDED', output: [`${url}/artifacts/${id}.mp4?_jwt=x`], cost: { credits: 60 } },
        };
      },
    },
    now,
  );
}
