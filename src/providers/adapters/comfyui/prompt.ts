import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Json, JsonObject } from '../../../catalog/model.ts';
import { inlineMedia } from '../../http/inline-media.ts';
import { counted } from '../../../lib/counted.ts';
import { NotStarted, refusedField, type InputFile, type InputFiles, type RunRequest } from '../../provider.ts';
import { targetsOf, type Plan, type Setting } from './plan.ts';
import { isFileField, seed_fields, withValues, type Target } from './workflow.ts';

/** The values of a run for the fields of its workflow. A file is uploaded, and its name is the value. */
export type FieldAssignment = Target & { input_field: string | undefined; value: Exclude<Json, object> | InputFile };

/** Returns the values that the input of a run sets. Throws InputRefused, and NotStarted for a field that sets nothing. */
export function assign(
  plan: Plan,
  { input, files = new Map() }: Pick<RunRequest, 'input' | 'files'>,
): FieldAssignment[] {
  return Object.entries(input).flatMap(([input_field, value]) => {
    if (value === null) return [];
    const setting = plan.inputs.get(input_field);
    if (!setting) {
      const message = `the options of the route do not say what the field ${input_field} of the input sets`;
      throw new NotStarted('refused', message, { is_not_route_fault: true });
    }
    return valuesOf(setting, input_field, value).map(({ node, field, value: one }) => {
      const target_node = plan.workflow.get(node);
      return {
        node,
        field,
        input_field,
        value: valueFor(
          { input_field, files, is_file: target_node !== undefined && isFileField(target_node, field) },
          one,
        ),
      };
    });
  });
}

/** Each item of a list is for one target, any other value for all. */
function valuesOf(setting: Setting, input_field: string, value: Json): (Target & { value: Json })[] {
  if ('targets' in setting) {
    const { targets } = setting;
    if (!Array.isArray(value)) return targets.map((target) => ({ ...target, value }));
    if (value.length > targets.length)
      throw refusedField(input_field, `takes at most ${counted(targets.length, 'item')}.`);
    return targets.slice(0, value.length).map((target, index) => ({ ...target, value: value[index] ?? '' }));
  }
  const [, width, height] = /^(\d{1,5})[x×*](\d{1,5})$/i.exec(typeof value === 'string' ? value.trim() : '') ?? [];
  if (width === undefined || height === undefined) throw refusedField(input_field, 'must be a size such as 1024x768.');
  return [
    { ...setting.width, value: Number(width) },
    { ...setting.height, value: Number(height) },
  ];
}

type Place = { input_field: string; files: InputFiles; is_file: boolean };

/** A list or an object would be a link to another node: it never comes from a caller. */
function valueFor({ input_field, files, is_file }: Place, value: Json): FieldAssignment['value'] {
  const file = (typeof value === 'string' ? files.get(value) : undefined) ?? inlineFile(value);
  if (file) return file;
  if (is_file) throw refusedField(input_field, 'must be a file.');
  if (typeof value === 'object') throw refusedField(input_field, 'must be a text, a number, true or false.');
  return value;
}

/**
 * Returns numbers for the fields of noise, where the caller sets none of them: without that ComfyUI answers the same
 * input with the same file. They come from the task, so that a repeated start is the same run.
 */
export function randomSeeds(plan: Plan, assigned: readonly FieldAssignment[], task_id: string): FieldAssignment[] {
  if (!plan.is_random || assigned.some(({ field }) => seed_fields.has(field))) return [];
  return [...plan.workflow].flatMap(([node, { inputs }]) =>
    Object.entries(inputs)
      .filter(([field, value]) => seed_fields.has(field) && typeof value === 'number')
      .map(([field]) => ({
        node,
        field,
        input_field: undefined,
        value: createHash('sha256').update(`${task_id} ${node} ${field}`).digest().readUInt32BE(),
      })),
  );
}

/** The workflow of a run. `nameOf`: the name of an uploaded file on the machine. */
export function promptOf(
  plan: Plan,
  assigned: readonly FieldAssignment[],
  nameOf: (file: InputFile) => string,
): JsonObject {
  const values = assigned.map(({ node, field, value }) => ({
    node,
    field,
    value: typeof value === 'object' && value !== null ? nameOf(value) : value,
  }));
  return withValues(plan.workflow, values);
}

/** The id of a run: a repeated start of the same work has the same, in the form that ComfyUI wants (RFC 9562, version 8). */
export function promptIdOf(task_id: string, prompt: JsonObject): string {
  const text = JSON.stringify([task_id, prompt]);
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

function inlineFile(value: Json): InputFile | undefined {
  const inline = inlineMedia(value);
  if (!inline) return undefined;
  const { content_type, bytes } = inline;
  return { content_type, size_bytes: bytes.length, open: async () => Readable.from([bytes]) };
}

/** Returns a name for a file on the machine, by its content: the same file is there once. Throws NotStarted if it is gone. */
export async function fileNameOf(file: InputFile): Promise<string> {
  const [, format = 'bin'] = file.content_type.split('/');
  const extension = extensions[format] ?? format.replaceAll(/^x-|\W.*$/g, '');
  const hash = createHash('sha256');
  try {
    await pipeline(await file.open(), hash);
  } catch (cause) {
    throw new NotStarted('unavailable', 'a file of the input could not be read', { simulated: true, cause });
  }
  return `${hash.digest('hex').slice(0, 32)}.${extension}`;
}

const extensions: Record<string, string> = { jpeg: 'jpg', mpeg: 'mp3', quicktime: 'mov', 'svg+xml': 'svg' };

/** The field of the input that sets this field of a node, or any field of it. */
export function inputFieldOf(plan: Plan, node: string, field?: string): string | undefined {
  const entry = [...plan.inputs].find(([, setting]) =>
    targetsOf(setting).some((target) => target.node === node && (field === undefined || target.field === field)),
  );
  return entry?.[0];
}
