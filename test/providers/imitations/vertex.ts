import { sampleFile, startImitation, type Imitation } from './imitation.ts';
import { refusal } from './gemini.ts';

export const vertex_place = '/v1/projects/my-project/locations/us-central1/publishers/google';
const form = /\/models\/([^/]+):(predict|predictLongRunning|fetchPredictOperation)$/;

/**
 * Media of Vertex AI: images come in the answer, videos are operations. An operation is asked for at its model, by a POST
 * with its name, and has the bytes; a GET of its name is a 404 (@google/genai, fetchPredictOperation).
 */
export async function startVertex(now?: () => number): Promise<Imitation> {
  const [image, video] = await Promise.all([sampleFile('image'), sampleFile('video')]);
  const polls = new Map<string, number>();
  return startImitation(
    {
      roleOf: ({ method, path }) => {
        const called = path.startsWith(vertex_place) ? form.exec(path)?.[2] : undefined;
        if (method !== 'POST' || called === undefined) return 'other';
        return called === 'fetchPredictOperation' ? 'poll' : 'submit';
      },
      answer: ({ role, path, headers, json }) => {
        const [, model = '', called] = form.exec(path) ?? [];
        if (role === 'other') return refusal(404, 'NOT_FOUND', 'There is no such method.');
        if (headers.authorization === undefined && headers['x-goog-api-key'] === undefined)
          return refusal(401, 'UNAUTHENTICATED', 'Request is missing required authentication credential.');
        if (called === 'predict')
          return { json: { predictions: [{ bytesBase64Encoded: image.toString('base64'), mimeType: 'image/png' }] } };
        const place = `${vertex_place.slice('/v1/'.length)}/models/${model}/operations/`;
        if (role === 'submit') {
          const name = `${place}${polls.size + 1}`;
          polls.set(name, 0);
          return { json: { name } };
        }
        const name = String(json['operationName']);
        const count = polls.get(name);
        if (count === undefined || !name.startsWith(place)) return refusal(404, 'NOT_FOUND', 'Operation not found.');
        polls.set(name, count + 1);
        return count === 0 ? { json: { name } } : vertexDone(name, [video]);
      },
    },
    now,
  );
}

/** An operation that is over, with its videos. */
export function vertexDone(name: string, clips: readonly Buffer[], more: object = {}) {
  const videos = clips.map((bytes) => ({ bytesBase64Encoded: bytes.toString('base64'), mimeType: 'video/mp4' }));
  const type = 'type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse';
  return {
    json: { name, done: true, response: { '@type': type, ...(videos.length > 0 && { videos }), ...more } },
  };
}
