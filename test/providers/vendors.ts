import { defaultModels, defaultProviders } from '../../src/catalog/default.ts';
import { mapInput } from '../../src/catalog/input.ts';
import { isMediaKind, type JsonObject } from '../../src/catalog/model.ts';
import type { RunRequest } from '../../src/providers/provider.ts';
import type { Imitation, Reply } from './imitations/imitation.ts';
import {
  startAssemblyai,
  startIdeogram,
  startRecraft,
  startSeedance,
  startStability,
  startWan,
  startXaiVideo,
} from './imitations/vendors.ts';
import { startCartesia, startDeepgram } from './imitations/voices.ts';
import type { Conformance } from './conformance.ts';

/** A provider that is only a preset of `http-queue`: its imitation, and its own words for what may happen. */
export type Vendor = {
  name: string;
  title: string;
  model: string;
  imitate(now?: () => number): Promise<Imitation>;
  input: JsonObject;
  /** It answers the submit with the files. */
  synchronous?: true;
  /** Answers to the submit. One without `moderated` moderates nothing. */
  moderated?: Reply;
  no_credit: Reply;
  /** Answers to polls. */
  fails?: Reply;
  moderated_later?: Reply;
  queued?: Reply;
  working?: Reply;
  unknown?: Reply;
  cancels?: true;
  /** Its state is asked before it is told to stop a run. */
  looks_first?: true;
};

/** The address of a provider below the origin of its imitation. */
export function basePathOf(name: string): string {
  return new URL(defaultProviders()[name]?.base_url ?? 'https://x.example').pathname.replace(/\/$/, '');
}

/** A run of a model over the provider, as the default catalogue has it. */
export function runOfVendor({
  name,
  model: id,
  input,
}: Pick<Vendor, 'name' | 'model' | 'input'>): Conformance['run'] & RunParts {
  const model = defaultModels().find((one) => one.id === id);
  const route = model?.routes.find(({ provider }) => provider === name);
  if (!model || !route || !isMediaKind(model.kind)) throw new Error(`${id} is not by ${name}`);
  const mapped = mapInput(route.input === undefined ? {} : { input: route.input }, input);
  const { options = {}, output = {}, upstream_model = '' } = route;
  return { kind: model.kind, model: upstream_model, input: mapped, options, output };
}

type RunParts = Pick<RunRequest, 'options' | 'output'>;

const video = { prompt: 'A quiet bay', aspect_ratio: '16:9', resolution: '720p', duration: 5 };
const image = 'data:image/png;base64,iVBORw0KGgo=';
const audio = 'data:audio/wav;base64,UklGRiQAAABXQVZF';
const voice = 'e07c00bc-4134-4eae-9ea4-1a55fb45746b';
const wan = (task_status: string, more: object = {}): Reply => ({
  json: { output: { task_id: 'x', task_status, ...more } },
});

const no_credit_at_cartesia: Reply = {
  status: 402,
  json: {
    error_code: 'quota_exceeded',
    title: 'No credits',
    message: 'You have no credits left.',
    request_id: 'r',
  },
};

export const vendors: readonly Vendor[] = [
  {
    name: 'stability',
    title: 'Stability AI',
    model: 'stability/stable-image-core',
    imitate: startStability,
    input: { prompt: 'A quiet bay', aspect_ratio: '16:9', output_format: 'png' },
    synchronous: true,
    moderated: { json: { image: 'AAAA', finish_reason: 'CONTENT_FILTERED', seed: 1 } },
    no_credit: { status: 402, json: { id: 'x', name: 'payment_required', errors: ['You have no credits'] } },
  },
  {
    name: 'ideogram',
    title: 'Ideogram',
    model: 'ideogram/ideogram-3-remix',
    imitate: startIdeogram,
    input: {
      prompt: 'A quiet bay',
      image,
      weight: 50,
      aspect_ratio: '16:9',
      speed: 'default',
      style: 'auto',
      n: 1,
    },
    synchronous: true,
    moderated: { json: { created: 'x', data: [{ is_image_safe: false, url: null, seed: 1 }] } },
    no_credit: { status: 401, json: { error: 'Not authorized to generate an image.' } },
  },
  {
    name: 'recraft',
    title: 'Recraft',
    model: 'recraft/v4.1',
    imitate: startRecraft,
    input: { prompt: 'A quiet bay', aspect_ratio: '16:9', n: 1 },
    synchronous: true,
    moderated: { status: 400, json: { code: 'content_policy', message: 'The prompt violates the content policy' } },
    no_credit: { status: 402, json: { code: 'not_enough_credits', message: 'not enough credits' } },
  },
  {
    name: 'xai-video',
    title: 'xAI (video)',
    model: 'xai/grok-imagine-video/image-to-video',
    imitate: startXaiVideo,
    input: { prompt: 'A quiet bay', resolution: '720p', duration: 5, image },
    moderated: { status: 400, json: { code: 'invalid-argument', error: 'Blocked by content moderation' } },
    moderated_later: {
      json: { status: 'done', video: { url: '', duration: 0, respect_moderation: false }, model: 'x' },
    },
    no_credit: { status: 403, json: { code: 'permission-denied', error: 'Your team has used all available credits' } },
    fails: { json: { status: 'failed', model: 'x', error: { code: 'internal_error', message: 'the renderer died' } } },
    queued: { status: 202 },
    working: { json: { status: 'rendering', progress: 12 } },
    unknown: { status: 404, json: { code: 'not-found', error: 'no such request' } },
  },
  {
    name: 'wan',
    title: 'Wan (DashScope)',
    model: 'alibaba/wan-2.7',
    imitate: startWan,
    input: video,
    moderated: {
      status: 400,
      json: { code: 'DataInspectionFailed', message: 'Input data may contain inappropriate content.' },
    },
    moderated_later: wan('FAILED', {
      code: 'DataInspectionFailed',
      message: 'Output data may contain inappropriate content.',
    }),
    no_credit: { status: 400, json: { code: 'Arrearage', message: 'Access denied, your account is overdue.' } },
    fails: wan('FAILED', { code: 'InternalError.Algo', message: 'inference internal error' }),
    queued: wan('PENDING'),
    working: wan('RUNNING'),
    unknown: wan('UNKNOWN'),
    cancels: true,
  },
  {
    name: 'seedance',
    title: 'Seedance (BytePlus)',
    model: 'bytedance/seedance-1.5-pro',
    imitate: startSeedance,
    input: { ...video, sound: true },
    moderated: {
      status: 400,
      json: {
        error: { code: 'InputTextSensitiveContentDetected', message: 'The request failed because of its text.' },
      },
    },
    moderated_later: {
      json: {
        status: 'failed',
        error: { code: 'OutputVideoSensitiveContentDetected', message: 'The output may be sensitive.' },
      },
    },
    no_credit: {
      status: 403,
      json: { error: { code: 'AccountOverdueError', message: 'The account has an overdue balance.' } },
    },
    fails: { json: { status: 'failed', error: { code: 'InternalServiceError', message: 'an internal error' } } },
    queued: { json: { id: 'x', status: 'queued' } },
    working: { json: { id: 'x', status: 'running' } },
    unknown: { status: 404, json: { error: { code: 'ResourceNotFound', message: 'no such task' } } },
    cancels: true,
    looks_first: true,
  },
  {
    name: 'assemblyai',
    title: 'AssemblyAI',
    model: 'assemblyai/universal-2',
    imitate: startAssemblyai,
    input: { audio, language: 'en' },
    moderated: { status: 400, json: { error: 'The content violates the usage policy' } },
    no_credit: { status: 402, json: { error: 'Your current account balance is negative.' } },
    fails: { json: { status: 'error', error: 'Transcoding failed. File does not appear to contain audio.' } },
    queued: { json: { id: 'x', status: 'queued' } },
    working: { json: { id: 'x', status: 'processing' } },
    unknown: { status: 404, json: { error: 'Transcript lookup error, transcript id not found' } },
  },
  {
    name: 'deepgram',
    title: 'Deepgram',
    model: 'deepgram/nova-3',
    imitate: startDeepgram,
    input: { audio },
    synchronous: true,
    no_credit: {
      status: 402,
      json: { err_code: 'ASR_PAYMENT_REQUIRED', err_msg: 'Project does not have enough credits.', request_id: 'r' },
    },
  },
  {
    name: 'deepgram',
    title: 'Deepgram speech',
    model: 'deepgram/aura-2',
    imitate: startDeepgram,
    input: { text: 'Good morning.', voice: 'thalia-en' },
    synchronous: true,
    no_credit: {
      status: 402,
      json: { err_code: 'PAYMENT_REQUIRED', err_msg: 'Project does not have enough credits.', request_id: 'r' },
    },
  },
  {
    name: 'cartesia',
    title: 'Cartesia',
    model: 'cartesia/sonic-3.5',
    imitate: startCartesia,
    input: { text: 'Good morning.', voice, language: 'en', speed: 1, volume: 1, emotion: 'neutral' },
    synchronous: true,
    no_credit: no_credit_at_cartesia,
  },
  {
    name: 'cartesia',
    title: 'Cartesia voice changer',
    model: 'cartesia/voice-changer',
    imitate: startCartesia,
    input: { audio, voice },
    synchronous: true,
    no_credit: no_credit_at_cartesia,
  },
];
