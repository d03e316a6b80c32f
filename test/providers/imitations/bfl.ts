import { sampleFile, startImitation, type Imitation, type Reply } from './imitation.ts';

/**
 * Black Forest Labs: a submit tells where to ask and what it costs; a run is `Pending` in the queue and at work
 * alike, and the link to its result is another host's.
 */
export function startBfl(now?: () => number): Promise<Imitation> {
  return startCrowdedBfl(Number.POSITIVE_INFINITY, { now, refuses: { status: 429 }, most_active: 0, accepted: 0 });
}

/** A crowded provider as a test sees it: `most_active` runs at once, `accepted` in all, and how it refuses more. */
export type Crowd = {
  now?: (() => number) | undefined;
  refuses: Exclude<Reply, string>;
  most_active: number;
  accepted: number;
};

/** The same with the limit of an account: more runs than `active_max` that are not ready are refused. */
export async function startCrowdedBfl(active_max: number, crowd: Crowd): Promise<Imitation> {
  const { now } = crowd;
  const active = new Set<string>();
  const image = await sampleFile('image');
  const video = await sampleFile('video');
  const polls = new Map<string, number>();
  let submits = 0;
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (method === 'POST' && /^\/v1\/flux-[\w.-]+$/.test(path)) return 'submit';
        if (method === 'GET' && path === '/v1/get_result') return 'poll';
        return method === 'GET' && path.startsWith('/delivery/') ? 'file' : 'other';
      },
      answer: ({ role, path, query, headers }, { url }) => {
        if (role === 'file') return headers['x-key'] === undefined ? fileOf(path) : { status: 400 };
        if (headers['x-key'] === undefined)
          return { status: 403, json: { detail: 'Not authenticated - Invalid Authentication' } };
        if (role === 'submit') {
          if (active.size >= active_max) return crowd.refuses;
          const id = `${path.includes('video') ? 'film' : 'picture'}-${++submits}`;
          active.add(id);
          crowd.accepted += 1;
          crowd.most_active = Math.max(crowd.most_active, active.size);
          return {
            json: { id, polling_url: `${url}/v1/get_result?id=${id}`, cost: 4.5, input_mp: 0, output_mp: 1.05 },
          };
        }
        const { id = '' } = query;
        const polls_so_far = (polls.get(id) ?? 0) + 1;
        polls.set(id, polls_so_far);
        if (polls_so_far === 1) return { json: { id, status: 'Pending', result: null, progress: null, details: null } };
        active.delete(id);
        const sample = `${url}/delivery/${id}`;
        return {
          json: { id, status: 'Ready', result: { sample, prompt: 'A bay', seed: 42, duration: 3.1 }, progress: null },
        };
      },
    },
    now,
  );

  function fileOf(path: string) {
    return path.includes('film')
      ? { headers: { 'content-type': 'video/mp4' }, bytes: video }
      : { headers: { 'content-type': 'image/png' }, bytes: image };
  }
}
