import type { JsonObject } from '../../../src/catalog/model.ts';
import { sampleFile, startImitation, type ReceivedRequest, type Imitation, type Reply } from './imitation.ts';

const form = /^\/v1beta\/models\/([^/]+):(generateContent|predict|predictLongRunning)$/;
const operation_form = /^\/v1beta\/(models\/[^/]+\/operations\/[^/]+)$/;

/** The Gemini API's pictures and films. A film is seen at work once; it is downloaded with the key, by a redirect. */
export async function startGemini(now: () => number): Promise<Imitation> {
  const [image_bytes, video] = await Promise.all([sampleFile('image'), sampleFile('video')]);
  const polls = new Map<string, number>();
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        if (method === 'POST' && form.test(path)) return 'submit';
        if (method === 'GET' && operation_form.test(path)) return 'poll';
        return path.startsWith('/v1beta/files/') || path.startsWith('/stored/') ? 'file' : 'other';
      },
      answer: (request, { url }) => {
        if (request.role === 'submit') return submit(request, image_bytes);
        if (request.role === 'poll') {
          const name = operation_form.exec(request.path)?.[1] ?? '';
          polls.set(name, (polls.get(name) ?? 0) + 1);
          return operation(
            name,
            polls.get(name) === 1 ? undefined : done([`${url}/v1beta/files/f1:download?alt=media`]),
          );
        }
        if (request.path.startsWith('/stored/')) return { bytes: video };
        if (request.path.startsWith('/v1beta/files/')) {
          const has_key = request.headers['x-goog-api-key'] !== undefined;
          return has_key
            ? { status: 302, headers: { location: '/stored/f1' } }
            : refusal(403, 'PERMISSION_DENIED', 'No key.');
        }
        return refusal(404, 'NOT_FOUND', 'There is no such method.');
      },
    },
    now,
  );
}

let runs = 0;

function submit({ path, json }: ReceivedRequest, image_bytes: Buffer): Reply {
  const [, model = '', method] = form.exec(path) ?? [];
  const data = image_bytes.toString('base64');
  if (method === 'generateContent')
    return answerOf([{ content: { role: 'model', parts: [drawn(data)] }, finishReason: 'STOP' }]);
  if (method === 'predict') {
    const { sampleCount = 1 } = json['parameters'] as JsonObject;
    const predictions = Array.from({ length: Number(sampleCount) }, () => ({
      bytesBase64Encoded: data,
      mimeType: 'image/png',
    }));
    return { json: { predictions } };
  }
  runs += 1;
  return { json: { name: `models/${model}/operations/op-${runs}` } };
}

/** A part with a picture. */
export function drawn(data: string, more: object = {}): object {
  return { inlineData: { mimeType: 'image/png', data }, ...more };
}

const usage = {
  promptTokenCount: 270,
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 12 },
    { modality: 'IMAGE', tokenCount: 258 },
  ],
  candidatesTokenCount: 1_290,
  candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1_290 }],
  thoughtsTokenCount: 40,
  totalTokenCount: 1_600,
};

export function answerOf(candidates: object[], more: object = {}): Reply {
  return { json: { candidates, usageMetadata: usage, modelVersion: 'x', ...more } };
}

/** An operation, with what came of it. */
export function operation(name: string, outcome?: object): Reply {
  return { json: { name, ...(outcome && { done: true, ...outcome }) } };
}

export function done(uris: string[], more: object = {}): object {
  const generatedSamples = uris.map((uri) => ({ video: { uri } }));
  const videos = { ...(uris.length > 0 && { generatedSamples }), ...more };
  return { response: { '@type': 'type.googleapis.com/PredictLongRunningResponse', generateVideoResponse: videos } };
}

export function refusal(code: number, status: string, message: string, details: object[] = []): Reply {
  return { status: code, json: { error: { code, message, status, ...(details.length > 0 && { details }) } } };
}

export function reason(text: string): object {
  return { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: text, domain: 'googleapis.com' };
}

export function retryIn(seconds: string): object {
  return { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` };
}
