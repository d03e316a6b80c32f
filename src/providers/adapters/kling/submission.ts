import type { JsonObject } from '../../../catalog/model.ts';
import { withBareBase64, withoutHollow } from '../../http/inline-media.ts';
import type { RunRequest } from '../../provider.ts';
import { objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { inPath } from '../../http/answers.ts';

/** The request that submits a run, and the path for polling it. */
export type Submission = {
  path: string;
  json: JsonObject;
  /** The API that has the model in its path, and one place to ask for all tasks. */
  is_new: boolean;
  /** Our own name for the run, by which it can be found without its id. */
  external_id: string;
};

/** `kling-3.0-turbo` and the like; those of the first API have a `v`, `kling-v2-6`. Images are the first's. */
const new_model = /\d\.\d/;

export function submissionOf(run: RunRequest): Submission {
  const is_new = run.kind === 'video' && new_model.test(run.model);
  // The same task may be tried with another model of the same account, which is another run.
  const external_id = `${run.task_id}-${run.model.replaceAll(/[^\w.-]/g, '_')}`;
  return { ...(is_new ? newApiSubmission(run, external_id) : oldApiSubmission(run, external_id)), is_new, external_id };
}

function oldApiSubmission(run: RunRequest, external_task_id: string): Pick<Submission, 'path' | 'json'> {
  const { kind, model, options, events_url } = run;
  const { duration, aspect_ratio, ...others } = withBareBase64(withoutHollow(run.input, isEmpty));
  const endpoint = textIn(options, 'endpoint') ?? (kind === 'image' ? 'generations' : firstEndpoint(others));
  const json = {
    ...others,
    ...(duration !== undefined && { duration: typeof duration === 'number' ? String(duration) : duration }),
    // A video from an image has the image's, and no such field.
    ...(aspect_ratio !== undefined && endpoint !== 'image2video' && { aspect_ratio }),
    model_name: model,
    external_task_id,
    ...(events_url !== undefined && { callback_url: events_url }),
  };
  return { path: `/v1/${kind}s/${inPath(endpoint)}`, json };
}

function firstEndpoint(input: JsonObject): string {
  if ('image_list' in input) return 'multi-image2video';
  if ('video_url' in input && 'character_orientation' in input) return 'motion-control';
  return 'image' in input || 'image_tail' in input ? 'image2video' : 'text2video';
}

function newApiSubmission(run: RunRequest, external_task_id: string): Pick<Submission, 'path' | 'json'> {
  const { model, options, events_url } = run;
  const input = withPrompt(withoutHollow(run.input, isFrameless));
  const endpoint = textIn(options, 'endpoint') ?? newEndpoint(input);
  const settings = objectIn(input, 'settings');
  const seconds = Number(textIn(settings, 'duration'));
  const json = {
    ...input,
    ...('settings' in input && { settings: { ...settings, ...(Number.isInteger(seconds) && { duration: seconds }) } }),
    options: {
      ...objectIn(input, 'options'),
      external_task_id,
      ...(events_url !== undefined && { callback_url: events_url }),
    },
  };
  return { path: `/${inPath(endpoint)}/${inPath(model)}`, json };
}

/** A prompt alone stands by itself; beside frames it is one of the contents. */
function withPrompt(input: JsonObject): JsonObject {
  const { prompt, contents: _, ...others } = input;
  const contents = objectsIn(input, 'contents');
  const frames = contents.filter((item) => item['type'] !== 'prompt');
  const prompt_item = contents.find((item) => item['type'] === 'prompt') ?? { type: 'prompt', text: prompt ?? '' };
  if (frames.length > 0) return { contents: prompt_item['text'] === '' ? frames : [prompt_item, ...frames], ...others };
  return { prompt: prompt_item['text'] ?? '', ...others };
}

function newEndpoint(input: JsonObject): string {
  const types = objectsIn(input, 'contents').map((item) => textIn(item, 'type'));
  if (types.some((type) => type === 'refer_image' || type === 'base_video' || type === 'feature_video'))
    return 'omni-video';
  return types.some((type) => type !== 'prompt') ? 'image-to-video' : 'text-to-video';
}

function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).length === 0;
}

/** A frame or another file of `contents` that was not given. */
function isFrameless(object: JsonObject): boolean {
  const { type } = object;
  return isEmpty(object) || (typeof type === 'string' && Object.keys(object).length === 1);
}
