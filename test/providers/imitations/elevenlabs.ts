import { mp3, wav } from '../../storage/samples.ts';
import { startImitation, type ReceivedRequest, type Imitation, type Reply } from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

export const transcript = 'The quick brown fox.';

const speech = /^\/v1\/text-to-speech\/([^/]+)$/;
const others = ['/v1/sound-generation', '/v1/music', '/v1/speech-to-text'];

/** ElevenLabs: every answer is the result, and tells in a header what it cost. */
export async function startElevenlabs(now: () => number): Promise<Imitation> {
  return startImitation(
    {
      roleOf: ({ method, path }) =>
        method === 'POST' && (speech.test(path) || others.includes(path)) ? 'submit' : 'other',
      answer: (request) => {
        if (request.role === 'other') return refusal(404, 'not_found', 'Not Found');
        if (request.headers['xi-api-key'] === undefined) return refusal(401, 'invalid_api_key', 'Invalid API key');
        return request.path.endsWith('speech-to-text') ? listen(request) : speechAnswer(request);
      },
    },
    now,
  );
}

/** The form of old errors, which new ones have too. */
export function refusal(status: number, code: string, message: string): Reply {
  return { status, json: { detail: { status: code, message } } };
}

function speechAnswer({ path, query, json }: ReceivedRequest): Reply {
  const voice = speech.exec(path)?.[1];
  if (voice === 'nobody') return refusal(400, 'voice_not_found', 'A voice with voice_id nobody was not found.');
  const field = path === '/v1/music' ? 'prompt' : 'text';
  if (typeof json[field] !== 'string') {
    const detail = [{ loc: ['body', field], msg: 'Field required', type: 'missing' }];
    return { status: 422, json: { detail } };
  }
  const { output_format: format = 'mp3_44100_128' } = query;
  if (format.startsWith('wav_') && voice === undefined) return refusal(400, 'invalid_output_format', format);
  const [, encoding, rate] = /^(\w+?)_(\d+)/.exec(format) ?? [];
  const file = wav(1, Number(rate));
  const bytes = encoding === 'wav' ? file : encoding === 'mp3' ? mp3(40) : samplesOf(file, encoding === 'pcm');
  const headers = { 'content-type': 'audio/mpeg', 'request-id': 'r1', 'character-cost': '12' };
  return { headers, bytes };
}

function samplesOf(file: Buffer, is_wide: boolean): Buffer {
  return is_wide ? file.subarray(44) : Buffer.alloc((file.length - 44) / 2, 0xd5);
}

function listen(request: ReceivedRequest): Reply {
  if (!partsOf(request).some(({ name }) => name === 'file')) return refusal(400, 'missing_file', 'There is no file.');
  const formats = JSON.parse(textsOf(request)['additional_formats'] ?? '[]') as { format: string }[];
  const additional_formats = formats.map(({ format }) => ({
    requested_format: format,
    file_extension: `.${format}`,
    content_type: 'text/plain',
    is_base64_encoded: false,
    content: `1\n00:00:00,199 --> 00:00:02,479\n${transcript}\n`,
  }));
  const words = [{ text: 'The', start: 0.199, end: 0.479, type: 'word', speaker_id: 'speaker_0', logprob: 0 }];
  const whole = {
    language_code: 'eng',
    language_probability: 0.98,
    text: transcript,
    words,
    audio_duration_secs: 2.48,
  };
  return { json: { ...whole, ...(formats.length > 0 && { additional_formats }) } };
}
