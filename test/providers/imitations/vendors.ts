import type { JsonObject } from '../../../src/catalog/model.ts';
import {
  sampleFile,
  startImitation,
  type ReceivedRequest,
  type Imitation,
  type Reply,
  type Role,
} from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

/** Providers that are only presets of `http-queue`, each built from what its own documentation says of requests and answers. */

type Place = { method: string; path: string };

/** A request that the provider would refuse: what is wrong with it. */
const wrong = (reason: string): Reply => ({ status: 400, json: { message: reason, error: reason, errors: [reason] } });

function has(input: ReceivedRequest, name: string): boolean {
  return partsOf(input).some((part) => part.name === name && part.filename !== undefined);
}

/** Stability AI (api.stability.ai/v2alpha/openapi, November 2026): a form, and the image as base64 with its reason. */
export async function startStability(now?: () => number): Promise<Imitation> {
  const image = (await sampleFile('image')).toString('base64');
  const answer = (input: ReceivedRequest): Reply => {
    if (input.role === 'other') return { status: 404, json: { id: 'x', name: 'not_found', errors: ['no such path'] } };
    const fields = textsOf(input);
    const service = input.path.split('/').at(-1) ?? '';
    const is_text = ['ultra', 'core', 'sd3', 'search-and-replace'].includes(service);
    if (is_text && (fields['prompt'] ?? '') === '') return wrong('prompt: cannot be blank');
    if (service === 'sd3' && !/^sd3\.5-(?:large|large-turbo|medium)$/.test(fields['model'] ?? ''))
      return wrong('model');
    if (/edit|upscale/.test(input.path) && !has(input, 'image')) return wrong('image: is required');
    if (input.headers.accept !== 'application/json') return wrong('accept');
    return { json: { image, finish_reason: 'SUCCESS', seed: 343_940_597 } };
  };
  const services =
    /^\/v2beta\/stable-image\/(?:generate\/(?:ultra|core|sd3)|edit\/(?:search-and-replace|remove-background)|upscale\/fast)$/;
  const roleOf = ({ method, path }: Place): Role => (method === 'POST' && services.test(path) ? 'submit' : 'other');
  return startImitation({ roleOf, answer }, now);
}

/** Ideogram (its OpenAPI document, 2026-06-17): a form, and links beside a word on each image. */
export async function startIdeogram(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const answer = (input: ReceivedRequest, { url }: { url: string }): Reply => {
    if (input.role === 'file') return { bytes: file, headers: { 'content-type': 'image/png' } };
    if (input.role === 'other') return { status: 404, json: { error: 'Not Found' } };
    const fields = textsOf(input);
    if ((fields['prompt'] ?? '') === '') return wrong('prompt is required');
    if (!/^\d+x\d+$/.test(fields['aspect_ratio'] ?? '1x1')) return wrong('aspect_ratio');
    if (!['TURBO', 'DEFAULT', 'QUALITY'].includes(fields['rendering_speed'] ?? 'DEFAULT')) return wrong('speed');
    if (input.path.endsWith('/remix') && !has(input, 'image')) return wrong('image is required');
    const data = Array.from({ length: Number(fields['num_images'] ?? 1) }, (_, at) => ({
      prompt: fields['prompt'],
      resolution: '1024x1024',
      is_image_safe: true,
      seed: 12_345,
      url: `${url}/api/images/ephemeral/${at}.png?exp=1743867804&sig=e13e`,
      style_type: 'GENERAL',
    }));
    return { json: { created: '2026-11-27T10:00:00+00:00', data } };
  };
  const roleOf = ({ method, path }: Place): Role => {
    if (path.startsWith('/api/images/ephemeral/')) return 'file';
    return method === 'POST' && /^\/v1\/ideogram-v3\/(?:generate|remix)$/.test(path) ? 'submit' : 'other';
  };
  return startImitation({ roleOf, answer }, now);
}

/** Recraft (external.api.recraft.ai/doc, 2026-08-22): JSON, links, and what they cost. */
export async function startRecraft(now?: () => number): Promise<Imitation> {
  const file = await sampleFile('image');
  const answer = (input: ReceivedRequest, { url }: { url: string }): Reply => {
    if (input.role === 'file') return { bytes: file, headers: { 'content-type': 'image/webp' } };
    if (input.role === 'other') return { status: 404, json: { code: 'not_found', message: 'no such path' } };
    const { prompt, model, size = '', n = 1 } = input.json;
    if (typeof prompt !== 'string' || prompt === '') return wrong('prompt is required');
    if (!/^\d+:\d+$/.test(String(size))) return wrong('size is unknown');
    const data = Array.from({ length: Number(n) }, (_, at) => ({ image_id: `image-${at}`, url: `${url}/img/${at}` }));
    return { json: { created: 1_764_000_000, credits: Number(n) * (model === 'recraftv4_1' ? 35 : 210), data } };
  };
  const roleOf = ({ method, path }: Place): Role => {
    if (path.startsWith('/img/')) return 'file';
    return method === 'POST' && path === '/v1/images/generations' ? 'submit' : 'other';
  };
  return startImitation({ roleOf, answer }, now);
}

/** A provider whose runs are asked for their state: once at work, then done. */
type Runs = {
  kind: 'video' | 'audio';
  roleOf(input: Place): Role;
  submit(input: ReceivedRequest, id: string): Reply;
  upload?(input: ReceivedRequest, url: string): Reply;
  going_on(id: string): Reply;
  done(id: string, url: string, input: JsonObject): Reply;
  cancel(id: string): Reply;
  missing: Reply;
};

async function startRuns(runs: Runs, now?: () => number): Promise<Imitation> {
  const file = await sampleFile(runs.kind);
  const submitted = new Map<string, { polls: number; input: JsonObject }>();
  const answer = (input: ReceivedRequest, { url }: { url: string }): Reply => {
    if (input.role === 'file') return { bytes: file, headers: { 'content-type': `${runs.kind}/mp4` } };
    if (input.role === 'other') return { status: 404, json: {} };
    if (input.role === 'upload') return runs.upload?.(input, url) ?? runs.missing;
    if (input.role === 'submit') {
      const id = `run-${submitted.size}`;
      submitted.set(id, { polls: 0, input: input.json });
      return runs.submit(input, id);
    }
    const id = /run-\d+/.exec(input.path)?.[0] ?? '';
    const run = submitted.get(id);
    if (!run) return runs.missing;
    if (input.role === 'cancel') return runs.cancel(id);
    run.polls += 1;
    return run.polls < 2 ? runs.going_on(id) : runs.done(id, url, run.input);
  };
  return startImitation({ roleOf: runs.roleOf, answer }, now);
}

const video_path = /^\/files\/run-\d+\.mp4$/;

/** Videos of xAI (docs.x.ai, 2026-08-22): 202 without a body while the run goes on. */
export function startXaiVideo(now?: () => number): Promise<Imitation> {
  const runs: Runs = {
    kind: 'video',
    roleOf: ({ method, path }) => {
      if (video_path.test(path)) return 'file';
      if (method === 'POST' && path === '/v1/videos/generations') return 'submit';
      return method === 'GET' && /^\/v1\/videos\/[\w-]+$/.test(path) ? 'poll' : 'other';
    },
    submit: ({ json }, request_id) => {
      const { model, prompt, image } = json;
      const is_whole =
        typeof model === 'string' && typeof prompt === 'string' && (image === undefined || 'url' in Object(image));
      return is_whole ? { json: { request_id } } : wrong('model, prompt or image.url is missing');
    },
    going_on: () => ({ status: 202 }),
    done: (id, url) => ({
      json: {
        status: 'done',
        video: { url: `${url}/files/${id}.mp4`, duration: 1, respect_moderation: true },
        model: 'grok-imagine-video',
        usage: { cost_in_usd_ticks: 700_000_000 },
      },
    }),
    cancel: () => ({ status: 404, json: {} }),
    missing: { status: 404, json: { code: 'not-found', error: 'no such request' } },
  };
  return startRuns(runs, now);
}

/** Wan at DashScope (alibabacloud.com/help/en/model-studio, 2026-08-22). */
export function startWan(now?: () => number): Promise<Imitation> {
  const task = (task_id: string, task_status: string, more: object = {}): Reply => ({
    json: { request_id: 'r', output: { task_id, task_status, ...more } },
  });
  const runs: Runs = {
    kind: 'video',
    roleOf: ({ method, path }) => {
      if (video_path.test(path)) return 'file';
      if (method === 'POST' && path === '/api/v1/services/aigc/video-generation/video-synthesis') return 'submit';
      if (method === 'POST' && /^\/api\/v1\/tasks\/[\w-]+\/cancel$/.test(path)) return 'cancel';
      return method === 'GET' && /^\/api\/v1\/tasks\/[\w-]+$/.test(path) ? 'poll' : 'other';
    },
    submit: ({ json, headers }, id) => {
      const { model, input, parameters } = json;
      if (headers['x-dashscope-async'] !== 'enable')
        return wrong('current user api does not support synchronous calls');
      if (typeof Object(input).prompt !== 'string' || !/^(?:720|1080)P$/.test(Object(parameters).resolution))
        return wrong('input');
      const needs_image = String(model).includes('i2v');
      const [frame] = Object(input).media ?? [];
      if (needs_image !== (frame?.type === 'first_frame' && typeof frame.url === 'string')) return wrong('media');
      return task(id, 'PENDING');
    },
    going_on: (id) => task(id, 'RUNNING'),
    done: (id, url) => task(id, 'SUCCEEDED', { video_url: `${url}/files/${id}.mp4`, orig_prompt: 'A bay' }),
    cancel: () => ({ json: { request_id: 'r' } }),
    missing: task('gone', 'UNKNOWN'),
  };
  return startRuns(runs, now);
}

/** Seedance at BytePlus ModelArk (docs.byteplus.com/en/docs/ModelArk, 2026-08-22). */
export function startSeedance(now?: () => number): Promise<Imitation> {
  const place = /^\/api\/v3\/contents\/generations\/tasks\/[\w-]+$/;
  const runs: Runs = {
    kind: 'video',
    roleOf: ({ method, path }) => {
      if (video_path.test(path)) return 'file';
      if (method === 'POST' && path === '/api/v3/contents/generations/tasks') return 'submit';
      if (!place.test(path)) return 'other';
      return method === 'GET' ? 'poll' : method === 'DELETE' ? 'cancel' : 'other';
    },
    submit: ({ json }, id) => {
      const content: unknown = json['content'];
      const items: unknown[] = Array.isArray(content) ? content : [];
      const is_whole =
        items.length > 0 && items.every((item) => 'text' in Object(item) || 'url' in Object(Object(item).image_url));
      return is_whole
        ? { json: { id } }
        : { status: 400, json: { error: { code: 'InvalidParameter', message: 'content' } } };
    },
    going_on: (id) => ({ json: { id, model: 'seedance', status: 'running' } }),
    done: (id, url) => ({
      json: {
        id,
        status: 'succeeded',
        content: { video_url: `${url}/files/${id}.mp4` },
        usage: { completion_tokens: 21_600 },
      },
    }),
    cancel: () => ({ json: {} }),
    missing: { status: 404, json: { error: { code: 'ResourceNotFound', message: 'no such task' } } },
  };
  return startRuns(runs, now);
}

/** AssemblyAI (assemblyai.com/docs, November 2026): the recording first, then its transcript. */
export function startAssemblyai(now?: () => number): Promise<Imitation> {
  const runs: Runs = {
    kind: 'audio',
    roleOf: ({ method, path }) => {
      if (method === 'POST' && path === '/v2/upload') return 'upload';
      if (method === 'POST' && path === '/v2/transcript') return 'submit';
      return method === 'GET' && /^\/v2\/transcript\/[\w-]+$/.test(path) ? 'poll' : 'other';
    },
    upload: ({ body, headers }, url) =>
      body.length > 0 && (headers['content-type'] ?? '').startsWith('audio/')
        ? { json: { upload_url: `${url}/cdn/1` } }
        : wrong('no file'),
    submit: ({ json }, id) => {
      const { audio_url, speech_models } = json;
      const is_whole = typeof audio_url === 'string' && audio_url.includes('/cdn/') && Array.isArray(speech_models);
      return is_whole
        ? { json: { id, status: 'queued', text: null, error: null } }
        : wrong('audio_url is no file of yours');
    },
    going_on: (id) => ({ json: { id, status: 'processing', text: null } }),
    done: (id) => ({ json: { id, status: 'completed', text: 'Waves on a beach.', audio_duration: 1, error: null } }),
    cancel: () => ({ status: 404, json: {} }),
    missing: { status: 404, json: { error: 'Transcript lookup error, transcript id not found' } },
  };
  return startRuns(runs, now);
}
