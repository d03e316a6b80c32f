import { sampleFile, startImitation, type Imitation } from './imitation.ts';

/** A task as the provider keeps it; `external` is the submitter's own name for it. */
type Task = { kind: 'image' | 'video'; external: unknown; polls: number };

const first = /^\/v1\/(videos|images)\/[\w-]+$/;
const below = /^(\/v1\/(?:videos|images)\/[\w-]+)\/([^/]+)$/;

/**
 * Kling with both of its APIs: the first asks for tasks below the path of their submit, by its own id or by the
 * submitter's; the other has the model in its path, one place for all tasks, and lists in its answers.
 */
export async function startKling(now?: () => number): Promise<Imitation> {
  const image = await sampleFile('image');
  const video = await sampleFile('video');
  const tasks = new Map<string, Task>();
  const add = (kind: Task['kind'], external: unknown) => {
    const id = String(926_484_082_518_392_851n + BigInt(tasks.size));
    tasks.set(id, { kind, external, polls: 0 });
    return id;
  };
  const find = (wanted_id: string): [string, Task] | undefined =>
    [...tasks].find(([id, { external }]) => id === wanted_id || external === wanted_id);
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (path.startsWith('/kcdn/')) return 'file';
        if (method === 'POST')
          return first.test(path) || /^\/[\w-]+-video\/kling-[\w.-]+$/.test(path) ? 'submit' : 'other';
        return below.test(path) || path === '/tasks' ? 'poll' : 'other';
      },
      answer: ({ role, path, query, headers, json }, { url }) => {
        if (role === 'file') return { bytes: path.includes('video') ? video : image };
        const body = (code: number, message: string, data?: object) => ({
          code,
          message,
          request_id: 'a',
          ...(data && { data }),
        });
        if (!/^Bearer ./.test(headers.authorization ?? ''))
          return { status: 401, json: body(1001, 'Authorization is empty') };
        const is_first = path.startsWith('/v1/');
        if (role === 'submit') {
          const options = json['options'] as { external_task_id?: string } | undefined;
          const id = add(
            path.includes('/images/') ? 'image' : 'video',
            is_first ? json['external_task_id'] : options?.external_task_id,
          );
          if (is_first)
            return {
              json: body(0, 'SUCCEED', { task_id: id, task_status: 'submitted', created_at: 1, updated_at: 1 }),
            };
          return { json: body(0, 'SUCCEED', { id, status: 'submitted', message: '', create_time: 1, update_time: 1 }) };
        }
        const task_id = is_first
          ? (below.exec(path)?.[2] ?? '')
          : (query['task_ids'] ?? query['external_task_ids'] ?? '');
        const [id = '', task] = find(task_id) ?? [];
        if (!task)
          return is_first ? { status: 404, json: body(1203, 'Task not found') } : { json: body(0, 'SUCCEED', []) };
        task.polls += 1;
        const link = `${url}/kcdn/${task.kind}`;
        const word = ['submitted', 'processing'][task.polls - 1];
        if (is_first) {
          const task_result = {
            [`${task.kind}s`]: [{ id: 'v', index: 0, url: link, watermark_url: '', duration: '5.1' }],
          };
          const ended = { task_status: 'succeed', task_result, final_unit_deduction: '1.5' };
          return {
            json: body(0, 'SUCCEED', { task_id: id, task_status_msg: '', ...(word ? { task_status: word } : ended) }),
          };
        }
        const outputs = [{ type: 'video', id: 'v', url: link, duration: '5.041' }];
        const billing = [{ charge_type: 'unit', amount: '4.0', package_type: 'video' }];
        const ended = { status: 'succeeded', outputs, billing };
        return { json: body(0, 'SUCCEED', [{ id, external_id: task.external, ...(word ? { status: word } : ended) }]) };
      },
    },
    now,
  );
}
