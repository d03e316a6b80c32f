import { sampleFile, startImitation, type Imitation } from './imitation.ts';

const prefix = /^\/(v1|dream-machine\/v1)\/generations/;

/** Luma: one place for all generations of the present API, two of Dream Machine; queued, at work, done. */
export async function startLuma(now?: () => number): Promise<Imitation> {
  const image = await sampleFile('image');
  const video = await sampleFile('video');
  const runs = new Map<string, { kind: 'image' | 'video'; polls: number }>();
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (path.startsWith('/storage/')) return 'file';
        if (!prefix.test(path)) return 'other';
        const rest = path.replace(prefix, '');
        if (method === 'GET' && rest.length > 1) return 'poll';
        const is_listed = path.startsWith('/v1') ? rest === '' : rest === '/video' || rest === '/image';
        return method === 'POST' && is_listed ? 'submit' : 'other';
      },
      answer: ({ role, path, headers, json }, { url }) => {
        if (role === 'file') return { bytes: path.endsWith('video') ? video : image };
        if (!/^Bearer ./.test(headers.authorization ?? '')) return { status: 401, json: { detail: 'Invalid API key' } };
        const dream = path.startsWith('/dream-machine');
        if (role === 'submit') {
          const id = `182bd5e5-6e1a-4fe4-a799-${runs.size}`;
          const kind = path.endsWith('/video') || json['type'] === 'video' ? 'video' : 'image';
          runs.set(id, { kind, polls: 0 });
          return {
            status: 201,
            json: { id, state: 'queued', created_at: '2026-08-01T12:00:00Z', model: json['model'] },
          };
        }
        const id = path.replace(prefix, '').slice(1);
        const run = runs.get(id);
        if (!run) return { status: 404, json: { detail: 'Generation not found' } };
        run.polls += 1;
        const about = { id, created_at: '2026-08-01T12:00:00Z', failure_reason: null };
        if (run.polls === 1)
          return { json: { ...about, state: 'queued', ...(dream ? { assets: null } : { output: [] }) } };
        if (run.polls === 2) return { json: { ...about, state: dream ? 'dreaming' : 'processing' } };
        const link = `${url}/storage/${run.kind}`;
        const result = dream ? { assets: { [run.kind]: link } } : { output: [{ type: run.kind, url: link }] };
        return { json: { ...about, state: 'completed', ...result } };
      },
    },
    now,
  );
}
