import { automatic1111 } from '../../../src/providers/adapters/automatic1111/adapter.ts';
import { bfl } from '../../../src/providers/adapters/bfl/adapter.ts';
import { comfyui } from '../../../src/providers/adapters/comfyui/adapter.ts';
import { elevenlabs } from '../../../src/providers/adapters/elevenlabs/adapter.ts';
import { fal } from '../../../src/providers/adapters/fal/adapter.ts';
import { gemini } from '../../../src/providers/adapters/gemini/adapter.ts';
import { gemini_interactions } from '../../../src/providers/adapters/gemini-interactions/adapter.ts';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { kling } from '../../../src/providers/adapters/kling/adapter.ts';
import { luma } from '../../../src/providers/adapters/luma/adapter.ts';
import { minimax } from '../../../src/providers/adapters/minimax/adapter.ts';
import { openai } from '../../../src/providers/adapters/openai/adapter.ts';
import { replicate } from '../../../src/providers/adapters/replicate/adapter.ts';
import { runway } from '../../../src/providers/adapters/runway/adapter.ts';
import { startWebUi } from '../imitations/automatic1111.ts';
import { startBfl } from '../imitations/bfl.ts';
import { startComfyUi, type ComfyUi } from '../imitations/comfyui/server.ts';
import { textToImage } from '../imitations/comfyui/workflows.ts';
import { refusal as refusalOfElevenlabs, startElevenlabs } from '../imitations/elevenlabs.ts';
import { startFal } from '../imitations/fal.ts';
import { answerOf, done, operation, startGemini } from '../imitations/gemini.ts';
import { interaction, startGeminiInteractions } from '../imitations/gemini-interactions.ts';
import type { Imitation, Reply } from '../imitations/imitation.ts';
import { startKling } from '../imitations/kling.ts';
import { startLuma } from '../imitations/luma.ts';
import { startMinimax } from '../imitations/minimax.ts';
import { refusal as refusalOfOpenai, startOpenai } from '../imitations/openai.ts';
import { startVideos, video } from '../imitations/openai-videos.ts';
import { prediction, startReplicate } from '../imitations/replicate.ts';
import { startRunway } from '../imitations/runway.ts';
import { startVertex, vertexDone, vertex_place } from '../imitations/vertex.ts';
import { basePathOf, runOfVendor, vendors, type Vendor } from '../vendors.ts';
import type { Answers, Subject } from './subject.ts';

/** Every adapter and preset of media: a row of the table for each API that it speaks. */

const prompt = { prompt: 'A quiet bay' };
const poll = (json: object, status = 200): Answers => ({ poll: [{ status, json }] });

const openai_rows: Subject[] = [
  {
    title: 'OpenAI images',
    adapter: openai,
    imitate: startOpenai,
    base_path: '/v1',
    run: { kind: 'image', model: 'gpt-image-1', input: prompt },
    synchronous: true,
    moderated: refusalOfOpenai(400, { message: 'Rejected by the safety system.', code: 'moderation_blocked' }),
  },
  {
    title: 'OpenAI speech',
    adapter: openai,
    imitate: startOpenai,
    base_path: '/v1',
    run: { kind: 'audio', model: 'gpt-4o-mini-tts', input: { input: 'Hello', voice: 'alloy' } },
    synchronous: true,
    moderated: refusalOfOpenai(400, { message: 'Your request was rejected.', code: 'content_policy_violation' }),
  },
  {
    title: 'OpenAI-shaped videos',
    adapter: openai,
    imitate: startVideos,
    base_path: '/v1',
    run: { kind: 'video', model: 'acme/film', input: { ...prompt, seconds: '4' } },
    moderated: refusalOfOpenai(400, { message: 'Your request was rejected.', code: 'content_policy_violation' }),
    moderated_later: poll(video('failed', { error: { code: 'moderation_blocked', message: 'It was flagged.' } })),
    fails: poll(video('failed', { error: { code: 'internal_error', message: 'x' } })),
    queued: poll(video('queued')),
    working: poll(video('in_progress')),
    unknown: poll({ detail: 'Video not found' }, 404),
  },
];

const gemini_rows: Subject[] = [
  {
    title: 'Gemini images',
    adapter: gemini,
    imitate: startGemini,
    run: { kind: 'image', model: 'gemini-2.5-flash-image', input: prompt },
    synchronous: true,
    moderated: answerOf([{ finishReason: 'IMAGE_SAFETY', finishMessage: 'Unable to show it.' }]),
  },
  {
    title: 'Imagen',
    adapter: gemini,
    imitate: startGemini,
    run: { kind: 'image', model: 'imagen-4.0-generate-001', input: prompt },
    synchronous: true,
    moderated: { json: { predictions: [{ raiFilteredReason: 'Unable to show it.' }] } },
  },
  {
    title: 'Veo',
    adapter: gemini,
    imitate: startGemini,
    run: { kind: 'video', model: 'veo-3.1-generate-preview', input: prompt },
    moderated_later: { poll: [operation('x', done([], { raiMediaFilteredCount: 1 }))] },
    fails: { poll: [operation('x', { error: { code: 13, message: 'Internal error' } })] },
    working: { poll: [operation('x')] },
    unknown: poll({}, 404),
  },
  {
    title: 'Veo on Vertex AI',
    adapter: gemini,
    imitate: startVertex,
    base_path: vertex_place,
    run: { kind: 'video', model: 'veo-3.1-generate-001', input: prompt },
    moderated_later: { poll: [vertexDone('x', [], { raiMediaFilteredCount: 1 })] },
    fails: { poll: [operation('x', { error: { code: 13, message: 'Internal error' } })] },
    working: { poll: [operation('x')] },
    unknown: poll({}, 404),
  },
];

const interactions_rows: Subject[] = [
  {
    title: 'Gemini video (Interactions)',
    adapter: gemini_interactions,
    imitate: startGeminiInteractions,
    run: { kind: 'video', model: 'gemini-omni-1.2-flash', input: { ...prompt, aspect_ratio: '16:9', duration: 5 } },
    moderated: { status: 400, json: { error: { code: 'invalid_request', message: 'Blocked for safety reasons.' } } },
    moderated_later: { poll: [interaction('a', 'failed', { finish_reason: 'PROHIBITED_CONTENT' })] },
    fails: { poll: [interaction('a', 'failed')] },
    queued: { poll: [interaction('a', 'queued')] },
    working: { poll: [interaction('a', 'in_progress')] },
    unknown: poll({ error: { code: 'not_found', message: 'not found' } }, 404),
  },
  {
    title: 'Gemini speech (Interactions)',
    adapter: gemini_interactions,
    imitate: startGeminiInteractions,
    run: { kind: 'audio', model: 'gemini-3.8-flash-tts', input: { text: 'Good morning.', voice: 'Kore' } },
    synchronous: true,
    moderated: interaction('a', 'failed', { finish_reason: 'SAFETY' }),
  },
];

const fal_answer = (status: number, json: object, headers: Record<string, string> = {}): Answers => ({
  poll: [{ json: { status: 'COMPLETED' } }],
  result: [{ status, headers, json }],
});
const flagged = { detail: [{ loc: ['body', 'prompt'], msg: 'It was flagged.', type: 'content_policy_violation' }] };

const answersOf = (more: Parameters<typeof prediction>[2]): Answers => ({
  poll: [{ json: prediction('https://api.replicate.com', `run${'0'.repeat(23)}`, more) }],
});

const queue_rows: Subject[] = [
  {
    title: 'fal',
    adapter: fal,
    imitate: startFal,
    run: { kind: 'image', model: 'fal-ai/flux/dev', input: prompt },
    moderated: { status: 422, json: flagged },
    moderated_later: fal_answer(422, flagged),
    fails: fal_answer(500, { detail: 'x' }, { 'x-fal-error-type': 'runner_server_error' }),
    queued: poll({ status: 'IN_QUEUE', queue_position: 3 }, 202),
    working: poll({ status: 'IN_PROGRESS' }, 202),
    unknown: poll({ detail: 'Not found' }, 404),
    removed: { status: 200, json: { status: 'CANCELED' } },
  },
  {
    title: 'Replicate',
    adapter: replicate,
    imitate: startReplicate,
    base_path: '/v1',
    run: { kind: 'image', model: 'acme/painter', input: prompt },
    moderated_later: answersOf({ status: 'failed', started_at: 'now', error: 'NSFW content detected.' }),
    fails: answersOf({ status: 'failed', started_at: 'now', error: 'CUDA out of memory' }),
    queued: answersOf({ status: 'starting' }),
    working: answersOf({ status: 'processing', started_at: 'now' }),
    unknown: poll({ detail: 'not found' }, 404),
  },
  {
    title: 'Black Forest Labs',
    adapter: bfl,
    imitate: startBfl,
    run: { kind: 'image', model: 'flux-2-pro', input: prompt },
    moderated_later: poll({ id: 'a', status: 'Content Moderated', result: null }),
    fails: poll({ id: 'a', status: 'Error', result: null }),
    queued: poll({ id: 'a', status: 'Pending', result: null }),
    working: poll({ id: 'a', status: 'Generating', result: null }),
    unknown: poll({ status: 'Task not found' }, 404),
  },
  {
    title: 'Runway',
    adapter: runway,
    imitate: startRunway,
    run: { kind: 'video', model: 'gen4.5', input: { promptText: 'A bay', ratio: '1280:720', duration: 5 } },
    moderated_later: poll({ id: 'a', status: 'FAILED', failureCode: 'SAFETY.OUTPUT.VIDEO', failure: '' }),
    fails: poll({ id: 'a', status: 'FAILED', failureCode: 'INTERNAL.BAD_OUTPUT.CODE01', failure: 'x' }),
    queued: poll({ id: 'a', status: 'THROTTLED' }),
    working: poll({ id: 'a', status: 'RUNNING', progress: 0.1 }),
    unknown: poll({ error: 'Not found' }, 404),
  },
];

const luma_rows: Subject[] = [
  {
    title: 'Luma',
    adapter: luma,
    imitate: startLuma,
    base_path: '/v1',
    run: { kind: 'video', model: 'ray-3.2', input: { ...prompt, video: { resolution: '720p', duration: '5s' } } },
    moderated: { status: 400, json: { detail: 'The prompt was moderated.' } },
    moderated_later: poll({ id: 'a', state: 'failed', failure_code: 'content_moderated', failure_reason: 'x' }),
    fails: poll({ id: 'a', state: 'failed', failure_code: 'generation_failed', failure_reason: 'x' }),
    queued: poll({ id: 'a', state: 'queued' }),
    working: poll({ id: 'a', state: 'processing' }),
    unknown: poll({ detail: 'Generation not found' }, 404),
  },
  {
    title: 'Luma Dream Machine',
    adapter: luma,
    imitate: startLuma,
    base_path: '/dream-machine/v1',
    run: { kind: 'video', model: 'ray-2', input: { ...prompt, resolution: '720p', duration: '5s' } },
    moderated_later: poll({ id: 'a', state: 'failed', failure_reason: '400: blocked by content moderation' }),
    fails: poll({ id: 'a', state: 'failed', failure_reason: '500: unknown' }),
    queued: poll({ id: 'a', state: 'queued', assets: null }),
    working: poll({ id: 'a', state: 'dreaming' }),
    unknown: poll({ detail: 'Generation not found' }, 404),
  },
];

const klings = (code: number, data?: object): object => ({ code, message: 'x', ...(data && { data }) });
const klingTask = (task_status: string, task_status_msg = '') =>
  poll(klings(0, { task_id: '1', task_status, task_status_msg }));
const newKlingTask = (status: string, message = '') => poll(klings(0, [{ id: '1', status, message }]));

const kling_rows: Subject[] = [
  {
    title: 'Kling',
    adapter: kling,
    imitate: startKling,
    run: { kind: 'video', model: 'kling-v2-6', input: { ...prompt, mode: 'pro', duration: 5 } },
    moderated: { status: 400, json: klings(1301) },
    moderated_later: klingTask('failed', 'Failure to pass the risk control system'),
    full: { status: 429, json: klings(1303) },
    fails: klingTask('failed', 'a node was lost'),
    queued: klingTask('submitted'),
    working: klingTask('processing'),
    unknown: poll(klings(1203), 404),
  },
  {
    title: 'Kling 3.0',
    adapter: kling,
    imitate: startKling,
    run: { kind: 'video', model: 'kling-3.0-turbo', input: { ...prompt, settings: { duration: 5 } } },
    moderated: { status: 400, json: klings(1301) },
    moderated_later: newKlingTask('failed', 'Triggered the content risk control of the platform'),
    full: { status: 429, json: klings(1303) },
    fails: newKlingTask('failed', 'a node was lost'),
    queued: newKlingTask('submitted'),
    working: newKlingTask('processing'),
    unknown: poll(klings(0, [])),
  },
];

const base = (status_code: number) => ({ base_resp: { status_code, status_msg: 'x' } });
const minimaxTask = (status: string, code = 0) => poll({ task_id: '1', status, ...base(code) });
const secondTask = (status: string, more: object = {}) => poll({ task: { id: '1', status, ...more } });

const minimax_rows: Subject[] = [
  {
    title: 'MiniMax video',
    adapter: minimax,
    imitate: startMinimax,
    run: { kind: 'video', model: 'MiniMax-Hailuo-2.3', input: { ...prompt, duration: 6 } },
    moderated: { json: base(1026) },
    moderated_later: minimaxTask('Fail', 1027),
    full: { json: base(1002) },
    fails: minimaxTask('Fail', 1000),
    queued: minimaxTask('Queueing'),
    working: minimaxTask('Processing'),
    unknown: poll({}, 404),
  },
  {
    title: 'MiniMax video, second API',
    adapter: minimax,
    imitate: startMinimax,
    run: { kind: 'video', model: 'MiniMax-H3', input: { ...prompt, duration: 5, ratio: '16:9' } },
    moderated: { status: 422, json: { type: 'error', error: { message: 'input new_sensitive (1026)' } } },
    moderated_later: secondTask('failed', { error: { code: '1027', message: 'output new_sensitive' } }),
    fails: secondTask('failed', { error: { code: 1000, message: 'x' } }),
    queued: secondTask('queued'),
    working: secondTask('running'),
    unknown: poll({ type: 'error', error: { message: 'record not found (1000)' } }, 500),
  },
  {
    title: 'MiniMax speech',
    adapter: minimax,
    imitate: startMinimax,
    run: { kind: 'audio', model: 'speech-2.8-hd', input: { text: 'Hello', voice_setting: { voice_id: 'a' } } },
    synchronous: true,
    moderated: { json: base(1026) },
    full: { json: base(1002) },
  },
];

const voiced = { text: 'Hello', voice_id: '21m00Tcm4TlvDq8ikWAM' };
const elevenlabs_rows: Subject[] = [
  {
    title: 'ElevenLabs speech',
    adapter: elevenlabs,
    imitate: startElevenlabs,
    run: { kind: 'audio', model: 'eleven_multilingual_v2', input: voiced },
    synchronous: true,
    moderated: refusalOfElevenlabs(400, 'content_against_policy', 'The text violates our rules.'),
  },
  {
    title: 'ElevenLabs music',
    adapter: elevenlabs,
    imitate: startElevenlabs,
    run: { kind: 'audio', model: 'music_v2', input: { prompt: 'A march', duration: 3.5 } },
    synchronous: true,
    moderated: refusalOfElevenlabs(400, 'bad_prompt', 'The prompt names a protected work.'),
  },
];

/** A ComfyUI whose machine was changed before its first run. */
const comfyWith = (change: (own: ComfyUi) => void) => async (): Promise<Imitation> => {
  const own = await startComfyUi();
  change(own);
  return own;
};
const fault = { node: '3', exception_type: 'RuntimeError', exception_message: 'x' };
const gone: Reply[] = [{ json: {} }, { json: { queue_running: [], queue_pending: [] } }];

const local_rows: Subject[] = [
  {
    title: 'ComfyUI',
    adapter: comfyui,
    imitate: startComfyUi,
    run: {
      kind: 'image',
      model: 'portrait',
      input: prompt,
      options: { workflow: textToImage(), inputs: { prompt: 'Positive.text' } },
    },
    fails: { imitate: comfyWith(({ machine }) => (machine.fault = fault)) },
    queued: { imitate: comfyWith(({ machine }) => (machine.holds = 'queued')) },
    working: { imitate: comfyWith(({ machine }) => (machine.holds = 'working')) },
    unknown: { poll: gone },
  },
  {
    title: 'Stable Diffusion web UI',
    adapter: automatic1111,
    imitate: startWebUi,
    run: { kind: 'image', model: 'dreamshaper_8.safetensors', input: prompt },
    synchronous: true,
    endless: async () => {
      const own = await startWebUi();
      own.holdUntil(new Promise(() => undefined));
      return own;
    },
  },
];

function rowOfPreset(vendor: Vendor): Subject {
  const { name, title, imitate, synchronous, moderated, moderated_later, fails, queued, working, unknown } = vendor;
  return {
    title,
    adapter: http_queue,
    imitate,
    base_path: basePathOf(name),
    run: runOfVendor(vendor),
    ...(synchronous && { synchronous }),
    ...(moderated && { moderated }),
    ...(moderated_later && { moderated_later: { poll: [moderated_later] } }),
    ...(fails && { fails: { poll: [fails] } }),
    ...(queued && { queued: { poll: [queued] } }),
    ...(working && { working: { poll: [working] } }),
    ...(unknown && { unknown: { poll: [unknown] } }),
  };
}

export const subjects: readonly Subject[] = [
  ...openai_rows,
  ...gemini_rows,
  ...interactions_rows,
  ...queue_rows,
  ...luma_rows,
  ...kling_rows,
  ...minimax_rows,
  ...elevenlabs_rows,
  ...local_rows,
  ...vendors.map(rowOfPreset),
];
