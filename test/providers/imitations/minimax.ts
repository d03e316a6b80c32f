import { sampleFile, startImitation, type Imitation } from './imitation.ts';

/** MiniMax: the first API says in every 200 whether it meant it, and keeps films as files; the second is another. */
export async function startMinimax(now?: () => number): Promise<Imitation> {
  const video = await sampleFile('video');
  const audio = await sampleFile('audio');
  const tasks = new Map<string, number>();
  const base = (status_code = 0, status_msg = 'success') => ({ base_resp: { status_code, status_msg } });
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (path.startsWith('/inference_output/')) return 'file';
        if (method === 'POST') return /^\/(v1|v2)\/video_generation$|^\/v1\/t2a_v2$/.test(path) ? 'submit' : 'other';
        if (method === 'DELETE') return path.startsWith('/v2/video_generation/') ? 'cancel' : 'other';
        if (path === '/v1/files/retrieve') return 'result';
        return path === '/v1/query/video_generation' || path.startsWith('/v2/query/video_generation/')
          ? 'poll'
          : 'other';
      },
      answer: ({ role, path, query, headers }, { url }) => {
        if (role === 'file') return { headers: { 'content-type': 'video/mp4' }, bytes: video };
        const is_first = path.startsWith('/v1/');
        if (headers.authorization === undefined) {
          if (is_first) return { json: base(1004, 'login fail: Please carry the API secret key') };
          return {
            status: 401,
            json: { type: 'error', error: { type: 'authentication_error', message: 'no key', http_code: '401' } },
          };
        }
        if (path === '/v1/t2a_v2') {
          const extra_info = { audio_length: 1_000, usage_characters: 26, audio_format: 'wav' };
          return { json: { data: { audio: audio.toString('hex'), status: 2 }, extra_info, trace_id: 'a', ...base() } };
        }
        if (role === 'cancel') return { json: {} };
        if (role === 'submit') {
          const task_id = String(115_334_141_465_231_360n + BigInt(tasks.size));
          tasks.set(task_id, 0);
          return { json: is_first ? { task_id, ...base() } : { task_id } };
        }
        if (role === 'result') {
          const file = {
            file_id: Number(query['file_id']),
            bytes: 1,
            download_url: `${url}/inference_output/output.mp4`,
          };
          return { json: { file, ...base() } };
        }
        const id = is_first ? (query['task_id'] ?? '') : path.slice('/v2/query/video_generation/'.length);
        const polls_so_far = (tasks.get(id) ?? 0) + 1;
        tasks.set(id, polls_so_far);
        if (is_first) {
          const status = ['Preparing', 'Processing'][polls_so_far - 1] ?? 'Success';
          const ended =
            status === 'Success' ? { file_id: 205_258_526_306_433, video_width: 1_366, video_height: 768 } : {};
          return { json: { task_id: id, status, ...ended, ...base() } };
        }
        const status = ['queued', 'running'][polls_so_far - 1] ?? 'succeeded';
        const usage = { total_seconds: 5, input_seconds: 0, output_seconds: 5 };
        const ended =
          status === 'succeeded' ? { content: { url: `${url}/inference_output/output.mp4` }, duration: 5, usage } : {};
        return { json: { task: { id, model: 'MiniMax-H3', status, ...ended } } };
      },
    },
    now,
  );
}
