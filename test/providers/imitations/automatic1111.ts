import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';

/**
 * Stable Diffusion web UI by modules/api/api.py and modules/progress.py (AUTOMATIC1111/stable-diffusion-webui and
 * lllyasviel/stable-diffusion-webui-forge, read 2026-11-27): one run at a time, the others wait for a lock, each answer
 * comes when its run is over, and an interrupt ends the one at work with what it has.
 */
export type WebUi = Imitation & {
  /** Runs wait here until the promise resolves, or they are interrupted. */
  holdUntil(released: Promise<void>): void;
  /** Ids of the runs in the order in which they were at work, with how they ended. */
  runs: { id: string; end: 'done' | 'interrupted' }[];
  /** SD.Next: ids are not known, and jobs have names. */
  is_sdnext: boolean;
};

export async function startWebUi(now?: () => number): Promise<WebUi> {
  const image = (await sampleFile('image')).toString('base64');
  const runs: WebUi['runs'] = [];
  const pending: string[] = [];
  let current: { id: string; interrupt(): void } | undefined;
  let held: Promise<void> = Promise.resolve();
  let lock: Promise<unknown> = Promise.resolve();

  const work = async (id: string): Promise<'done' | 'interrupted'> => {
    pending.splice(pending.indexOf(id), 1);
    const interrupted = new Promise<'interrupted'>((resolve) => {
      current = { id, interrupt: () => resolve('interrupted') };
    });
    const end = await Promise.race([held.then(() => 'done' as const), interrupted]);
    current = undefined;
    runs.push({ id, end });
    return end;
  };
  const generate = async ({ path, json }: ReceivedRequest): Promise<Reply> => {
    const refusal = refuse(path, json);
    if (refusal) return refusal;
    const id = typeof json['force_task_id'] === 'string' ? json['force_task_id'] : 'task(random)';
    pending.push(id);
    const running = lock.then(() => work(id));
    lock = running;
    await running;
    const count = Number(json['batch_size'] ?? 1) * Number(json['n_iter'] ?? 1);
    const all_seeds = Array.from({ length: count }, (_, index) => 7 + index);
    const info = JSON.stringify({ prompt: json['prompt'], all_seeds, index_of_first_image: 0 });
    // A map of an extension stands behind the images.
    return { json: { images: [...all_seeds.map(() => image), image], parameters: {}, info } };
  };
  const answer = (request: ReceivedRequest): Reply | Promise<Reply> => {
    switch (request.role) {
      case 'submit':
        return generate(request);
      case 'poll': {
        if (request.path === '/sdapi/v1/progress') {
          const job = current === undefined ? '' : site.is_sdnext ? 'API-TXT' : 'scripts_txt2img';
          return { json: { progress: 0.2, eta_relative: 3, state: { job, job_count: 1 }, current_image: null } };
        }
        const id = site.is_sdnext ? undefined : request.json['id_task'];
        const queued = pending.some((one) => one === id);
        return { json: { active: id !== undefined && current?.id === id, queued, completed: false } };
      }
      case 'cancel':
        current?.interrupt();
        return { json: {} };
      case 'result':
        return { json: checkpoints };
      default:
        return { status: 404, json: { detail: 'Not Found' } };
    }
  };
  const imitation = await startImitation({ roleOf, answer }, now);
  const site: WebUi = Object.assign(imitation, {
    holdUntil: (released: Promise<void>) => void (held = released),
    runs,
    is_sdnext: false,
  });
  return site;
}

function roleOf({ method, path }: { method: string; path: string }): Role {
  if (method === 'POST' && /^\/sdapi\/v1\/(?:txt2img|img2img)$/.test(path)) return 'submit';
  if (method === 'POST' && path === '/sdapi/v1/interrupt') return 'cancel';
  if (method === 'POST' && path === '/internal/progress') return 'poll';
  if (method === 'GET' && path === '/sdapi/v1/progress') return 'poll';
  return method === 'GET' && path === '/sdapi/v1/sd-models' ? 'result' : 'other';
}

const checkpoints = ['dreamshaper_8', 'two words'].map((model_name) => ({
  title: `${model_name}.safetensors [879db523c3]`,
  model_name,
  hash: '879db523c3',
  filename: `/models/${model_name}.safetensors`,
}));

const samplers = ['Euler', 'DPM++ 2M'];

/** Checks a request as FastAPI and the handlers of the web UI do. */
function refuse(path: string, json: JsonObject): Reply | undefined {
  const { width = 512, steps = 20, sampler_name = 'Euler', init_images } = json;
  for (const [name, value] of Object.entries({ width, steps })) {
    if (typeof value === 'number') continue;
    const detail = [{ type: 'int_parsing', loc: ['body', name], msg: 'Input should be a valid integer', input: value }];
    return { status: 422, json: { detail } };
  }
  if (typeof sampler_name !== 'string' || !samplers.includes(sampler_name))
    return raised('HTTPException', 404, 'Sampler not found');
  const checkpoint = checkpointOf(json);
  if (checkpoint !== undefined && !checkpoints.some(({ model_name }) => String(checkpoint).startsWith(model_name)))
    return raised('RuntimeError', 500, '', `model '${String(checkpoint)}' not found`);
  if (!path.endsWith('img2img')) return undefined;
  if (!Array.isArray(init_images)) return raised('HTTPException', 404, 'Init image not found');
  const is_image = init_images.every(
    (image) => typeof image === 'string' && Buffer.from(image, 'base64').includes('PNG'),
  );
  return is_image ? undefined : raised('HTTPException', 500, 'Invalid encoded image');
}

function checkpointOf({ override_settings }: JsonObject): Json | undefined {
  return typeof override_settings === 'object' && override_settings !== null && !Array.isArray(override_settings)
    ? override_settings['sd_model_checkpoint']
    : undefined;
}

/** An exception in the form of `handle_exception`. */
export function raised(error: string, status: number, detail: string, errors = ''): Reply {
  return { status, json: { error, detail, body: '', errors } };
}
