import type { JsonObject } from '../../../catalog/model.ts';
import type { Upstream } from '../../http/http.ts';
import type { RunRequest, RunState } from '../../provider.ts';
import { objectsIn, textIn } from '../../http/reading.ts';
import { bytesIn, otherFields, pathOf, type Work } from './work.ts';

/** Four images of the largest size in base64. */
const answer_bytes_max = 134_217_728;

/** Images of the Imagen family, and of other models that are asked for predictions. */
export const predictImages: Work = async (upstream, run, signal) => {
  const json = bodyOf(run);
  const answer = await upstream.call({ method: 'POST', path: pathOf(upstream, run), json, signal, answer_bytes_max });
  return answer.ok ? readPredictions(upstream, answer.object()) : answer;
};

function bodyOf({ input }: RunRequest): JsonObject {
  const { prompt = '' } = input;
  return {
    instances: [{ prompt }],
    // Without it a filtered image is missing without a word.
    parameters: { includeRaiReason: true, ...otherFields(input, ['prompt']) },
  };
}

/** Images that were found unfit are missing, or have a reason in their place; the others are a result. */
function readPredictions(upstream: Upstream, answer: JsonObject): RunState {
  const predictions = objectsIn(answer, 'predictions');
  const files = predictions.flatMap((one) => {
    const bytes = bytesIn(one, 'bytesBase64Encoded');
    return bytes ? [{ bytes }] : [];
  });
  if (files.length > 0) return { phase: 'done', files };
  const reason = predictions.map((one) => textIn(one, 'raiFilteredReason')).find((text) => text !== undefined);
  return upstream.failure({ code: 'moderation', message: reason ?? '' });
}
