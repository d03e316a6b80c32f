import { mp3 } from '../../storage/samples.ts';
import { startImitation, type ReceivedRequest, type Imitation, type Reply } from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

/** Providers of voices that are presets of `http-queue`, built from the types of their own SDKs. */

const heard = 'Waves on a beach.';

const audio: Reply = { bytes: mp3(40), headers: { 'content-type': 'audio/mpeg' } };

/** Deepgram (@deepgram/sdk 5.13.0: `ListenV1Response`, `SpeakV1Request`; developers.deepgram.com/reference/errors). */
export function startDeepgram(now?: () => number): Promise<Imitation> {
  const refusal = (status: number, err_code: string, err_msg: string): Reply => ({
    status,
    json: { err_code, err_msg, request_id: 'r' },
  });
  const listen = ({ query, body, headers }: ReceivedRequest): Reply => {
    if (!/^nova-[23]/.test(query['model'] ?? '')) return refusal(400, 'Bad Request', 'No such model/language/tier.');
    const is_audio = body.length > 0 && (headers['content-type'] ?? '').startsWith('audio/');
    if (!is_audio) return refusal(400, 'Bad Request', 'failed to process audio: corrupt or unsupported data');
    const metadata = { request_id: 'r', sha256: 'x', created: '2026-11-28T10:00:00.000Z', duration: 1, channels: 1 };
    const alternatives = [{ transcript: heard, confidence: 0.99, words: [] }];
    return {
      json: { metadata: { ...metadata, models: ['x'], model_info: {} }, results: { channels: [{ alternatives }] } },
    };
  };
  const speak = ({ query, json }: ReceivedRequest): Reply => {
    if (!/^aura-2-[a-z]+-(?:en|es|de|nl|fr|it|ja)$/.test(query['model'] ?? ''))
      return refusal(400, 'Bad Request', 'No such model.');
    if (typeof json['text'] === 'string' && query['encoding'] === 'mp3') return audio;
    const details = 'Json deserialize error: missing field `text` at line 1 column 2';
    return {
      status: 400,
      json: { category: 'INVALID_JSON', message: 'Invalid JSON submitted.', details, request_id: 'r' },
    };
  };
  return startImitation(
    {
      roleOf: ({ method, path }) => (method === 'POST' && /^\/v1\/(?:listen|speak)$/.test(path) ? 'submit' : 'other'),
      answer: (request) => {
        if (request.role === 'other') return { status: 404, json: {} };
        if (!/^Token ./.test(request.headers.authorization ?? ''))
          return refusal(401, 'INVALID_AUTH', 'Invalid credentials.');
        return request.path.endsWith('/listen') ? listen(request) : speak(request);
      },
    },
    now,
  );
}

/** Cartesia (@cartesia/cartesia-js 4.2.0: `TTSGenerateParams`, `VoiceChangerGenerateParams`; docs.cartesia.ai). */
export function startCartesia(now?: () => number): Promise<Imitation> {
  const refusal = (status: number, error_code: string, message: string): Reply => ({
    status,
    json: { error_code, title: 'Refused', message, request_id: '550e8400-e29b-41d4-a716-446655440000' },
  });
  const isMp3 = (container: unknown, bit_rate: unknown, sample_rate: unknown) =>
    container === 'mp3' && Number(bit_rate) === 128_000 && Number(sample_rate) === 44_100;
  const speak = ({ json }: ReceivedRequest): Reply => {
    const { model_id, transcript, voice, output_format } = json;
    const { container, bit_rate, sample_rate } = Object(output_format);
    if (typeof transcript !== 'string' || transcript === '') return refusal(400, 'transcript_empty', 'No transcript.');
    if (!String(model_id).startsWith('sonic-3')) return refusal(404, 'model_not_found', 'No such model.');
    if (typeof Object(voice).id !== 'string') return refusal(404, 'voice_not_found', 'No such voice.');
    return isMp3(container, bit_rate, sample_rate) ? audio : refusal(400, 'output_format', 'No such format.');
  };
  const change = (request: ReceivedRequest): Reply => {
    const fields = textsOf(request);
    if (!partsOf(request).some(({ name, filename }) => name === 'clip' && filename !== undefined))
      return refusal(400, 'clip', 'clip is required.');
    if ((fields['voice[id]'] ?? '') === '') return refusal(404, 'voice_not_found', 'No such voice.');
    const [container, bit_rate, sample_rate] = ['container', 'bit_rate', 'sample_rate'].map(
      (name) => fields[`output_format[${name}]`],
    );
    return isMp3(container, bit_rate, sample_rate) ? audio : refusal(400, 'output_format', 'No such format.');
  };
  return startImitation(
    {
      roleOf: ({ method, path }) =>
        method === 'POST' && /^\/(?:tts|voice-changer)\/bytes$/.test(path) ? 'submit' : 'other',
      answer: (request) => {
        if (request.role === 'other') return refusal(404, 'not_found', 'Not found.');
        if (!/^Bearer ./.test(request.headers.authorization ?? '')) return refusal(401, 'unauthorized', 'No key.');
        if (request.headers['cartesia-version'] !== '2026-08-14') return refusal(400, 'version', 'No version.');
        return request.path === '/tts/bytes' ? speak(request) : change(request);
      },
    },
    now,
  );
}
