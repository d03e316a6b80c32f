import { mp3, wav } from '../../storage/samples.ts';
import { sampleFile, startImitation, type ReceivedRequest, type Imitation, type Reply } from './imitation.ts';
import { partsOf, textsOf } from './multipart.ts';

export const transcript = 'The quick brown fox.';

const paths = ['/v1/images/generations', '/v1/images/edits', '/v1/audio/speech', '/v1/audio/transcriptions'];

/** OpenAI's pictures, speech and transcripts: every answer is the result. */
export async function startOpenai(now: () => number): Promise<Imitation> {
  const image_bytes = await sampleFile('image');
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (method === 'POST' && paths.includes(path)) return 'submit';
        return path.startsWith('/made/') ? 'file' : 'other';
      },
      answer: (request, { url }) => {
        if (request.role === 'file') return { bytes: image_bytes };
        if (request.role === 'other') return refusal(404, { message: 'Invalid URL', type: 'invalid_request_error' });
        if (request.path.startsWith('/v1/images')) return imagesAnswer(request, image_bytes, `${url}/made/1.png`);
        return request.path === '/v1/audio/speech' ? speech(request) : transcription(request);
      },
    },
    now,
  );
}

export function refusal(status: number, error: object): Reply {
  return { status, json: { error: { param: null, code: null, ...error } } };
}

/** Only DALL·E lets itself be told how its pictures come, and gives links unless it is. */
function imagesAnswer(request: ReceivedRequest, image_bytes: Buffer, link: string): Reply {
  const is_edit = request.path.endsWith('edits');
  const fields = is_edit ? textsOf(request) : request.json;
  const { model, response_format: format, n = 1 } = fields;
  if (is_edit && !partsOf(request).some(({ name }) => name === 'image' || name === 'image[]')) {
    return refusal(400, { message: "Missing required parameter: 'image'.", code: 'missing_required_parameter' });
  }
  const is_dalle = String(model).startsWith('dall-e');
  if (format !== undefined && !is_dalle) {
    const message = "Unknown parameter: 'response_format'.";
    return refusal(400, { message, type: 'invalid_request_error', code: 'unknown_parameter' });
  }
  const is_link = is_dalle && format !== 'b64_json';
  const one = is_link ? { url: link } : { b64_json: image_bytes.toString('base64') };
  const usage = {
    input_tokens: is_edit ? 210 : 10,
    input_tokens_details: { text_tokens: 10, image_tokens: is_edit ? 200 : 0 },
    output_tokens: 272 * Number(n),
    total_tokens: 0,
  };
  const data = Array.from({ length: Number(n) }, () => one);
  return { json: { created: 1_700_000_000, data, ...(!is_dalle && { output_format: 'png', usage }) } };
}

function speech({ json }: ReceivedRequest): Reply {
  const audio = audioAs(json['response_format']);
  if (json['stream_format'] !== 'sse') return { headers: { 'content-type': 'audio/mpeg' }, bytes: audio };
  const half = Math.floor(audio.length / 2);
  const events = [
    ...[audio.subarray(0, half), audio.subarray(half)].map((part) => ({
      type: 'speech.audio.delta',
      audio: part.toString('base64'),
    })),
    { type: 'speech.audio.done', usage: { input_tokens: 14, output_tokens: 101, total_tokens: 115 } },
  ];
  return { text: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') };
}

function audioAs(format: unknown): Buffer {
  if (format === 'wav') return wav(1, 24_000);
  if (format === 'pcm') return wav(1, 24_000).subarray(44);
  return mp3(40);
}

function transcription(request: ReceivedRequest): Reply {
  const file = partsOf(request).find(({ name }) => name === 'file');
  if (!file) return refusal(400, { message: "Missing required parameter: 'file'." });
  const { model = '', response_format: format = 'json' } = textsOf(request);
  if (format === 'srt') return { text: `1\n00:00:00,000 --> 00:00:01,000\n${transcript}\n\n` };
  if (format === 'vtt') return { text: `WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n${transcript}\n\n` };
  if (format === 'text') return { text: `${transcript}\n` };
  if (format === 'verbose_json')
    return { json: { text: transcript, duration: 1.5, language: 'english', segments: [] } };
  const usage = model.startsWith('whisper')
    ? { type: 'duration', seconds: 2 }
    : {
        type: 'tokens',
        input_tokens: 30,
        input_token_details: { text_tokens: 4, audio_tokens: 26 },
        output_tokens: 9,
        total_tokens: 39,
      };
  return { json: { text: transcript, usage } };
}
