import type { Catalog } from '../catalog/catalog.ts';
import { limitOfKey } from '../catalog/key-limits.ts';
import { isModelAllowed } from '../catalog/key-models.ts';
import type { ImageToolSettings, JsonObject, Model } from '../catalog/model.ts';
import type { Caller } from '../accounts/authenticate.ts';
import type { Semaphore } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { withTempFiles, type TempFileParts } from '../files/temp-files.ts';
import { readBytes } from '../lib/read-bytes.ts';
import type { Windows } from '../limits/window.ts';
import type { Storage } from '../storage/storage.ts';
import { allowanceOf } from '../styles/allowed.ts';
import type { ChatRequest } from '../styles/codec.ts';
import { offerOf } from '../styles/media-parameters/offer.ts';
import { image_parameters, mapParameter } from '../styles/media-parameters/parameters.ts';
import { createTask, findMediaModel, priceTaskRequest, type CreateParts } from '../tasks/create.ts';
import { loadTask, type TaskRef } from '../tasks/task.ts';
import type { UntilFinal } from '../tasks/wait.ts';
import type { RequestMemory } from './request-memory.ts';

/** Images that the service makes itself, for a call that asks for them: tasks of the caller's account like all others. */
export type OwnImages = {
  readonly settings: ImageToolSettings;
  /** In the words of `/v1/images/generations`. */
  readonly parameters: JsonObject;
  /** The most images of the call: the caller's number, at most the operator's. */
  readonly images_max: number;
};

/**
 * Returns the images of a request; undefined where it asks for none, the operator offers none, or the
 * key may not use the model of images. Throws ApiError 400
 * naming the field.
 */
export function ownImages(
  { style, body, n }: ChatRequest,
  { routes }: Model,
  { settings: { tools }, models, aliases }: Pick<Catalog, 'settings' | 'models' | 'aliases'>,
  { key }: Pick<Caller, 'key'>,
): OwnImages | undefined {
  const { image_generation: settings } = tools;
  const { images } = style.caller;
  if (!settings || !images || n > 1 || models.get(settings.model)?.kind !== 'image') return undefined;
  if (!isModelAllowed({ models, aliases }, key.models, settings.model)) return undefined;
  if (routes.some((route) => allowanceOf(route.options).pass.has('tools'))) return undefined;
  const options = images.read(body);
  if (!options) return undefined;
  const { parameters, images_max = settings.images_max } = options;
  return { settings, parameters, images_max: Math.min(images_max, settings.images_max) };
}

/** The parts of the app that making an image takes. */
export type ImageParts = CreateParts &
  TempFileParts & {
    readonly untilFinal: UntilFinal;
    readonly storage: Storage;
    readonly windows: Windows;
    readonly limits: { readonly link_memory: Semaphore };
  };

/** The bytes of an image, or the reason why there is none, in words for the model. */
export type ImageResult = { base64: string; format: string; size?: string } | { reason: string };

/** Larger ones are in the task alone. */
const image_bytes_max = 12_000_000;

type Making = {
  caller: Caller;
  request_id: string;
  images: OwnImages;
  prompt: string;
  memory: RequestMemory;
  timeout_ms: number;
  signal: AbortSignal;
};

/**
 * Makes an image by a task of the caller's account: it is held for, charged and refunded as every task is, and goes on if
 * nobody waits for it any more. Rejects only with the signal's reason: all else is told to the model.
 */
export async function makeImage(parts: ImageParts, making: Making): Promise<ImageResult> {
  if (making.prompt === '') return { reason: 'The image failed: it needs a prompt.' };
  const ends_at_ms = performance.now() + making.timeout_ms;
  try {
    making.signal.throwIfAborted(); // it would be paid for, and shown to nobody
    const ref = await begin(parts, making);
    await parts.untilFinal(ref, making.timeout_ms, making.signal);
    making.signal.throwIfAborted();
    return await imageOf(parts, ref, { ...making, ends_at_ms });
  } catch (error) {
    if (making.signal.aborted) throw error;
    if (error instanceof ApiError) return { reason: `The image failed: ${error.message}` };
    throw error;
  }
}

async function begin(parts: ImageParts, making: Making): Promise<TaskRef> {
  const { caller, request_id, images, prompt, signal } = making;
  const { settings } = parts.catalog.current;
  const taken = await parts.windows.take(
    'generate',
    caller.key.id,
    limitOfKey(settings, caller, 'generate'),
    performance.now(),
  );
  if (!taken.ok) throw new ApiError('rate_limit', 'Too many images with this key in the last minute.');
  const model = findMediaModel(parts, caller, images.settings.model);
  const body = {
    model: model.id,
    input: inputOf(model, prompt, images.parameters),
    metadata: { chat_call: request_id },
  };
  const request = await withTempFiles(parts, caller.account.id, { gone: signal }, (spool) =>
    priceTaskRequest(parts, caller, body, { spool }),
  );
  const { ref } = await createTask(parts, caller, request, undefined);
  return ref;
}

/** Returns the input of the task. Parameters that the model of images does not have are left out: the caller has chosen it for another one. */
function inputOf(model: Model, prompt: string, parameters: JsonObject): JsonObject {
  const offer = offerOf(model, 'image');
  let { input } = mapParameter(offer, image_parameters, { prompt });
  for (const [name, value] of Object.entries(parameters)) {
    try {
      const more = mapParameter(offer, image_parameters, { [name]: value }).input;
      if (model.validateInput({ ...input, ...more }).ok) input = { ...input, ...more };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
  return input;
}

type Showing = Pick<Making, 'memory' | 'signal'> & { ends_at_ms: number };

async function imageOf(parts: ImageParts, ref: TaskRef, { memory, signal, ends_at_ms }: Showing): Promise<ImageResult> {
  const task = await loadTask(parts.db, ref);
  if (task?.status === 'failed') return { reason: `The image failed: ${task.error_message ?? 'nobody knows why'}` };
  if (task?.status !== 'succeeded')
    return { reason: `The image takes longer: the user will find it as the task ${ref.task_id}.` };
  const [file] = task.files;
  const { size_bytes = 0, content_type = '', width, height } = file?.item ?? {};
  if (!file || task.files_removed_at || size_bytes > image_bytes_max)
    return { reason: `The image is too large to be shown: the user finds it as the task ${ref.task_id}.` };
  // The call has some of this memory, for its files and images: many such calls would wait for one another for ever.
  const timeout_ms = Math.max(1, ends_at_ms - performance.now());
  const permit = await parts.limits.link_memory.acquire(ref.account_id, { weight: size_bytes * 2, signal, timeout_ms });
  if (!permit) {
    signal.throwIfAborted();
    return { reason: `The image cannot be shown now: the user finds it as the task ${ref.task_id}.` };
  }
  memory.add(() => permit.release());
  const opened = await parts.storage.open(file.key);
  if (!opened) return { reason: `The files of the task ${ref.task_id} are no longer kept.` };
  const bytes = await readBytes(opened.stream, opened.size_bytes);
  return {
    base64: bytes.toString('base64'),
    format: content_type.replace('image/', ''),
    ...(width !== undefined && { size: `${width}x${height}` }),
  };
}
