import type { JsonObject } from '../../../catalog/model.ts';
import { readDataUrl } from '../../../lib/data-url.ts';
import { appendFields, appendFile } from '../../http/multipart.ts';
import type { RunFile, RunRequest, RunState } from '../../provider.ts';
import { objectsIn, textIn, textsOf } from '../../http/reading.ts';
import { bodyOf, usageOf, type Work } from './work.ts';
import { readTokens } from './tokens.ts';

/** Ten images of the largest size are in one answer, in base64. */
const answer_bytes_max = 268_435_456;

/** `image` (one or a list) makes it an edit of these images, with `mask` of the first. */
export const makeImages: Work = async (upstream, run, signal) => {
  const images = textsOf(run.input['image']);
  const request =
    images.length === 0
      ? ({ path: '/images/generations', json: fieldsOf(run) } as const)
      : ({ path: '/images/edits', form: editOf(run, images) } as const);
  const answer = await upstream.call({ method: 'POST', ...request, signal, answer_bytes_max });
  return answer.ok ? readImages(run, answer.object()) : answer;
};

const never_sent = ['image', 'mask', 'stream', 'partial_images', 'response_format'];

function fieldsOf(run: RunRequest): JsonObject {
  const format = answerFormat(run);
  return { ...bodyOf(run, never_sent), ...(format !== 'none' && { response_format: format }) };
}

/**
 * Returns the `response_format` to send, or `none`. The GPT image models always send the bytes and refuse the
 * parameter; DALL·E sends links without it. Other servers do not get it: both forms are understood.
 */
function answerFormat({ model, options }: RunRequest): string {
  const { response_format } = options;
  if (typeof response_format === 'string') return response_format;
  return model.startsWith('dall-e') ? 'b64_json' : 'none';
}

function editOf(run: RunRequest, images: readonly string[]): FormData {
  const form = new FormData();
  appendFields(form, fieldsOf(run));
  const name = images.length === 1 ? 'image' : 'image[]';
  for (const image of images) appendFile(form, name, 'image', image);
  const { mask } = run.input;
  if (mask !== undefined && mask !== null) appendFile(form, 'mask', 'mask', mask);
  return form;
}

function readImages({ options }: RunRequest, answer: JsonObject): RunState {
  return {
    phase: 'done',
    files: objectsIn(answer, 'data').map(fileOf),
    ...readTokens('image', usageOf(answer), options),
  };
}

function fileOf(item: JsonObject): RunFile {
  const base64 = textIn(item, 'b64_json');
  const url = textIn(item, 'url') ?? '';
  const inline = base64 === undefined ? readDataUrl(url)?.bytes : Buffer.from(base64, 'base64');
  return inline ? { bytes: inline } : { url };
}
