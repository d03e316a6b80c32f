import { expect } from 'vitest';
import { http_queue } from '../../../src/providers/adapters/http-queue/adapter.ts';
import { conformance, type Conformance } from '../conformance.ts';
import type { Reply } from '../imitations/imitation.ts';
import { secret } from '../upstreams.ts';
import { basePathOf, runOfVendor, vendors } from '../vendors.ts';

/** The presets of `http-queue`: what every adapter promises. */

const bearer = { authorization: `Bearer ${secret}` };
const a_form = expect.stringMatching(/^multipart\/form-data; boundary=medley-\w{30}$/);

/** The submit of each as its documentation has it, by its name, or by its model where it has several. */
const submits: Record<string, Conformance['submit']> = {
  stability: {
    method: 'POST',
    path: '/v2beta/stable-image/generate/core',
    headers: { ...bearer, 'content-type': a_form, accept: 'application/json' },
  },
  ideogram: {
    method: 'POST',
    path: '/v1/ideogram-v3/remix',
    headers: { 'api-key': secret, 'content-type': a_form },
  },
  recraft: {
    method: 'POST',
    path: '/v1/images/generations',
    headers: bearer,
    json: { model: 'recraftv4_1', prompt: 'A quiet bay', size: '16:9', n: 1, response_format: 'url' },
  },
  'xai-video': {
    method: 'POST',
    path: '/v1/videos/generations',
    headers: bearer,
    json: {
      model: 'grok-imagine-video',
      prompt: 'A quiet bay',
      resolution: '720p',
      duration: 5,
      image: { url: 'data:image/png;base64,iVBORw0KGgo=' },
    },
  },
  wan: {
    method: 'POST',
    path: '/api/v1/services/aigc/video-generation/video-synthesis',
    headers: { ...bearer, 'x-dashscope-async': 'enable' },
    json: {
      model: 'wan2.7-t2v',
      input: { prompt: 'A quiet bay' },
      parameters: { resolution: '720P', ratio: '16:9', duration: 5, watermark: false },
    },
  },
  seedance: {
    method: 'POST',
    path: '/api/v3/contents/generations/tasks',
    headers: bearer,
    json: {
      model: 'seedance-1-5-pro-251215',
      content: [{ type: 'text', text: 'A quiet bay' }],
      ratio: '16:9',
      resolution: '720p',
      duration: 5,
      generate_audio: true,
      watermark: false,
    },
  },
  assemblyai: {
    method: 'POST',
    path: '/v2/transcript',
    headers: { authorization: secret },
    json: { audio_url: expect.stringContaining('/cdn/1'), speech_models: ['universal-2'], language_code: 'en' },
  },
  'deepgram/nova-3': {
    method: 'POST',
    path: '/v1/listen',
    query: { model: 'nova-3', language: 'en', smart_format: 'true' },
    headers: { authorization: `Token ${secret}`, 'content-type': 'audio/wav' },
  },
  'deepgram/aura-2': {
    method: 'POST',
    path: '/v1/speak',
    query: { model: 'aura-2-thalia-en', encoding: 'mp3' },
    headers: { authorization: `Token ${secret}`, 'content-type': 'application/json' },
    json: { text: 'Good morning.' },
  },
  'cartesia/sonic-3.5': {
    method: 'POST',
    path: '/tts/bytes',
    headers: { ...bearer, 'cartesia-version': '2026-08-14', 'content-type': 'application/json' },
    json: {
      model_id: 'sonic-3.5',
      transcript: 'Good morning.',
      voice: { id: 'e07c00bc-4134-4eae-9ea4-1a55fb45746b' },
      language: 'en',
      output_format: { container: 'mp3', bit_rate: 128_000, sample_rate: 44_100 },
      generation_config: { speed: 1, volume: 1, emotion: 'neutral' },
    },
  },
  'cartesia/voice-changer': {
    method: 'POST',
    path: '/voice-changer/bytes',
    headers: { ...bearer, 'cartesia-version': '2026-08-14', 'content-type': a_form },
  },
};

for (const vendor of vendors) {
  const { name, title, model, synchronous, moderated, no_credit, fails, moderated_later, queued, unknown } = vendor;
  const submit = submits[model] ?? submits[name];
  if (!submit) throw new Error(`the submit of ${name} is missing`);
  const poll = (reply: Reply | undefined) => ({ poll: reply === undefined ? [] : [reply] });
  conformance({
    name: `http-queue as ${title}`,
    adapter: http_queue,
    imitate: vendor.imitate,
    base_path: basePathOf(name),
    run: runOfVendor(vendor),
    submit,
    ...(synchronous && { synchronous }),
    refusals: [
      ...(moderated ? [['moderated', moderated, { refused: 'content_policy_violation' }] satisfies Refusal] : []),
      ['no credit', no_credit, { not_started: 'rejected_credentials' }],
    ],
    polls: [
      ['queued', poll(queued), { phase: 'waiting' }],
      ['failed', poll(fails), { phase: 'failed', type: 'upstream_error', message: /^The model provider/ }],
      ['unknown for a moment', poll(unknown), { phase: 'waiting' }],
      ...(moderated_later
        ? [['moderated', poll(moderated_later), { phase: 'failed', type: 'content_policy_violation' }] satisfies Case]
        : []),
    ],
    ...(vendor.working && name === 'xai-video' && { unknown_word: vendor.working }),
    pace: { per_minute: 600 },
    cancels: cancelsOf(name),
  });
}

type Case = NonNullable<Conformance['polls']>[number];
type Refusal = Conformance['refusals'][number];

function cancelsOf(name: string): NonNullable<Conformance['cancels']> {
  if (name === 'wan') {
    const too_late: Reply = {
      status: 400,
      json: { code: 'UnsupportedOperation', message: 'Failed to cancel the task' },
    };
    return [
      ['it is told to stop', { json: { request_id: 'r' } }, 'stopped'],
      ['it is too late', too_late, 'billed'],
    ];
  }
  return [[name === 'seedance' ? 'its state is asked first, and it runs' : 'there is none', {}, 'billed']];
}
