import { createHash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { inlineMedia } from '../../http/inline-media.ts';
import { refusedField, type RunContext, type RunRequest } from '../../provider.ts';

/** The body of a run: of `/sdapi/v1/txt2img`, or of `/sdapi/v1/img2img` where there is an image. */
export type Submission = { path: '/sdapi/v1/txt2img' | '/sdapi/v1/img2img'; json: JsonObject };

/** Fields that reach into the machine: scripts, settings, folders. The options of the route may set them, a caller never. */
const never_from_callers = new Set([
  'alwayson_scripts',
  'do_not_save_grid',
  'do_not_save_samples',
  'firstphase_height',
  'force_task_id',
  'infotext',
  'override_settings',
  'override_settings_restore_afterwards',
  'save_images',
  'script_args',
  'script_name',
  'send_images',
]);

/** `upstream_model` that takes the checkpoint which the machine has loaded. */
export const current_checkpoint = 'current';

/** Returns the body of a run. Throws InputRefused for fields that no caller may send, and for files that are none. */
export function submissionOf(run: RunRequest): Submission {
  const { input, model, options } = run;
  const forbidden = Object.keys(input).find((name) => never_from_callers.has(name));
  if (forbidden !== undefined) throw refusedField(forbidden, 'is not for callers.');
  const { image, init_images, mask, size, n, ...others } = withoutNulls(input);
  const fixed = isObject(options['body']) ? options['body'] : {};
  const own_settings = fixed['override_settings'];
  const override_settings = {
    ...(isObject(own_settings) && own_settings),
    ...(model !== current_checkpoint && { sd_model_checkpoint: model }),
  };
  const images = filesOf('image', image).concat(filesOf('init_images', init_images));
  const json: JsonObject = {
    ...others,
    ...(size !== undefined && sizeOf(size)),
    ...(n !== undefined && { n_iter: n }),
    override_settings_restore_afterwards: false,
    ...fixed,
    ...(Object.keys(override_settings).length > 0 && { override_settings }),
    force_task_id: machineId(run),
    save_images: false,
    send_images: true,
  };
  if (images.length === 0) return { path: '/sdapi/v1/txt2img', json };
  const [mask_file] = filesOf('mask', mask);
  return {
    path: '/sdapi/v1/img2img',
    json: { ...json, init_images: images, ...(mask_file !== undefined && { mask: mask_file }) },
  };
}

/** The id of a run on the machine. It is not secret, and says nothing. */
export function machineId({ task_id }: Pick<RunContext, 'task_id'>): string {
  return `task(medley-${createHash('sha256').update(task_id).digest('hex').slice(0, 20)})`;
}

function withoutNulls(input: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}

/** Files as base64. A text that is none would be an address that the machine asks. */
function filesOf(field: string, value: Json | undefined): string[] {
  if (value === undefined) return [];
  return [value].flat().map((item) => {
    const file = inlineMedia(item);
    if (!file) throw refusedField(field, 'must be a file.');
    return file.bytes.toString('base64');
  });
}

function sizeOf(value: Json): JsonObject {
  const [, width, height] = /^(\d{1,5})[x×*](\d{1,5})$/i.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  if (width === undefined || height === undefined) throw refusedField('size', 'must be a size such as 1024x768.');
  return { width: Number(width), height: Number(height) };
}
