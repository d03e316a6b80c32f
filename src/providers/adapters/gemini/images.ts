import type { JsonObject } from '../../../catalog/model.ts';
import type { Upstream } from '../../http/http.ts';
import { fileOf } from '../../http/multipart.ts';
import { InputRefused, type RunRequest, type RunState } from '../../provider.ts';
import { objectIn, objectsIn, textIn, textsOf } from '../../http/reading.ts';
import { scrub } from '../../http/scrub.ts';
import { readTokens } from './tokens.ts';
import { bytesIn, otherFields, pathOf, type Work } from './work.ts';

/** A few images of the largest size in base64. */
const answer_bytes_max = 134_217_728;

/** The images that a model of the Gemini family draws, perhaps after some given ones. */
export const makeImages: Work = async (upstream, run, signal) => {
  const json = bodyOf(run);
  const answer = await upstream.call({ method: 'POST', path: pathOf(upstream, run), json, signal, answer_bytes_max });
  return answer.ok ? readImages(upstream, run, answer.object()) : answer;
};

const image_fields = ['aspectRatio', 'imageSize', 'personGeneration'];

function bodyOf({ input, options }: RunRequest): JsonObject {
  const { prompt, image } = input;
  const images = textsOf(image).map((url): JsonObject => {
    const { content_type, bytes } = fileOf('image', url);
    return { inlineData: { mimeType: content_type, data: bytes.toString('base64') } };
  });
  const image_config = Object.fromEntries(
    Object.entries(input).filter(([name, value]) => value !== null && image_fields.includes(name)),
  );
  const { safety_settings, tools } = options;
  return {
    contents: [{ role: 'user', parts: [...textsOf(prompt).map((text) => ({ text })), ...images] }],
    generationConfig: {
      ...otherFields(input, ['prompt', 'image', ...image_fields]),
      responseModalities: ['IMAGE'],
      ...(Object.keys(image_config).length > 0 && { imageConfig: image_config }),
    },
    ...(safety_settings !== undefined && { safetySettings: safety_settings }),
    ...(tools !== undefined && { tools }),
  };
}

function readImages(upstream: Upstream, { options }: RunRequest, answer: JsonObject): RunState {
  const candidates = objectsIn(answer, 'candidates');
  const files = candidates.flatMap((candidate) => objectsIn(objectIn(candidate, 'content'), 'parts')).flatMap(imageIn);
  if (files.length > 0) return { phase: 'done', files, ...readTokens(answer, options) };
  const feedback = objectIn(answer, 'promptFeedback');
  const reason = textIn(feedback, 'blockReason');
  if (reason !== undefined) throw blocked(textIn(feedback, 'blockReasonMessage'), upstream.secrets);
  const [candidate] = candidates;
  if (!candidate) throw new Error('the answer has no candidates');
  return unfinished(upstream, candidate);
}

/** Models that think draw drafts, which are no results. */
function imageIn(part: JsonObject): { bytes: Buffer }[] {
  const data = objectIn(part, 'inlineData');
  const bytes = bytesIn(data, 'data');
  const is_image = textIn(data, 'mimeType')?.startsWith('image/') ?? false;
  return bytes && is_image && part['thought'] !== true ? [{ bytes }] : [];
}

/** It never looked at the prompt further: a status of 200 all the same. */
function blocked(words: string | undefined, secrets: readonly string[]): InputRefused {
  const message = words === undefined ? 'The model provider found the prompt unfit.' : scrub(words, secrets);
  return new InputRefused('content_policy_violation', message);
}

const unfit =
  /^(?:SAFETY|PROHIBITED_CONTENT|BLOCKLIST|SPII|RECITATION|IMAGE_SAFETY|IMAGE_PROHIBITED_CONTENT|IMAGE_RECITATION)$/;
const without_image = /^(?:STOP|NO_IMAGE)$/;

/** Returns the state of a run that stopped without an image. */
function unfinished(upstream: Upstream, candidate: JsonObject): RunState {
  const reason = textIn(candidate, 'finishReason') ?? 'STOP';
  const message = textIn(candidate, 'finishMessage') ?? '';
  if (unfit.test(reason)) return upstream.failure({ code: 'moderation', message });
  if (!without_image.test(reason)) return upstream.failure({ code: reason });
  const advice = 'The model answered without an image: change the prompt.';
  return { phase: 'failed', type: 'invalid_request', message: advice };
}
