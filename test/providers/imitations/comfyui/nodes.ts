import type { Json, JsonObject } from '../../../../src/catalog/model.ts';
import { isObject } from '../../../../src/catalog/model.ts';

/**
 * The nodes of an imitated ComfyUI and its check of a workflow, as validate_prompt and validate_inputs of execution.py
 * (github.com/Comfy-Org/ComfyUI, read 2026-11-27) do it: types, ranges and lists of each field of each node that an
 * output needs.
 */

type FieldRule =
  | { type: 'STRING' }
  | { type: 'INT' | 'FLOAT'; min?: number; max?: number }
  | { type: 'LIST'; values: readonly string[] }
  /** Checked by the node itself: the file has to be there. */
  | { type: 'FILE' }
  | { type: 'LINK' };

type NodeRule = { fields: Record<string, FieldRule>; is_output?: true };

const link: FieldRule = { type: 'LINK' };
const text: FieldRule = { type: 'STRING' };
const size: FieldRule = { type: 'INT', min: 16, max: 16_384 };
const files = ['sd_xl_base_1.0.safetensors', 'wan2.2_t2v.safetensors'];

const nodes: Record<string, NodeRule> = {
  CheckpointLoaderSimple: { fields: { ckpt_name: { type: 'LIST', values: files } } },
  CLIPTextEncode: { fields: { text, clip: link } },
  EmptyLatentImage: { fields: { width: size, height: size, batch_size: { type: 'INT', min: 1, max: 4_096 } } },
  KSampler: {
    fields: {
      seed: { type: 'INT', min: 0 },
      steps: { type: 'INT', min: 1, max: 10_000 },
      cfg: { type: 'FLOAT', min: 0, max: 100 },
      sampler_name: { type: 'LIST', values: ['euler', 'dpmpp_2m'] },
      model: link,
      positive: link,
      negative: link,
      latent_image: link,
    },
  },
  VAEDecode: { fields: { samples: link, vae: link } },
  LoadImage: { fields: { image: { type: 'FILE' } } },
  LoadAudio: { fields: { audio: { type: 'FILE' } } },
  LoadImageMask: { fields: { image: { type: 'FILE' }, channel: text } },
  VAEEncodeForInpaint: { fields: { pixels: link, mask: link, vae: link } },
  SaveImage: { fields: { images: link, filename_prefix: text }, is_output: true },
  PreviewImage: { fields: { images: link }, is_output: true },
  VHS_VideoCombine: {
    fields: { images: link, frame_rate: { type: 'FLOAT', min: 1 }, filename_prefix: text },
    is_output: true,
  },
  SaveAudio: { fields: { audio: link, filename_prefix: text }, is_output: true },
};

/** The answer of `/object_info/CLASS`; an object without members for one that is not installed. */
export function objectInfo(class_type: string): JsonObject {
  const rule = nodes[class_type];
  if (!rule) return {};
  const required = Object.entries(rule.fields).map(([field, one]): [string, Json] => [field, specOf(one)]);
  const info = {
    input: { required: Object.fromEntries(required) },
    name: class_type,
    output_node: rule.is_output ?? false,
  };
  return { [class_type]: info };
}

function specOf(rule: FieldRule): Json {
  switch (rule.type) {
    case 'INT':
    case 'FLOAT':
      return [rule.type, { default: 1, min: rule.min ?? 0, max: rule.max ?? 18_446_744_073_709_552_000 }];
    case 'LIST':
      return [[...rule.values], {}];
    case 'FILE':
      return [['example.png'], { image_upload: true }];
    default:
      return rule.type === 'STRING' ? ['STRING', { multiline: true }] : ['MODEL'];
  }
}

export type Refusal = { error: JsonObject; node_errors: JsonObject };

export type Checked = { refusal: Refusal } | { outputs: string[] };

/** Checks a workflow. `hasFile`: is there such a file in the folder `input`? */
export function checkPrompt(prompt: JsonObject, hasFile: (name: string) => boolean): Checked {
  const outputs: string[] = [];
  for (const [id, node] of Object.entries(prompt)) {
    const class_type = isObject(node) ? node['class_type'] : undefined;
    const rule = typeof class_type === 'string' ? nodes[class_type] : undefined;
    if (!rule) {
      const message = `Node '${String(class_type)}' not found. The custom node may not be installed.`;
      const error = { type: 'missing_node_type', message, details: `Node ID '#${id}'`, extra_info: { node_id: id } };
      return { refusal: { error, node_errors: {} } };
    }
    if (rule.is_output) outputs.push(id);
  }
  if (outputs.length === 0) {
    const error = { type: 'prompt_no_outputs', message: 'Prompt has no outputs', details: '', extra_info: {} };
    return { refusal: { error, node_errors: {} } };
  }
  const errors = new Map<string, JsonObject[]>();
  const good = outputs.filter((id) => isGood(prompt, id, hasFile, errors));
  if (good.length > 0) return { outputs: good };
  const all = [...errors.values()].flat();
  const details = all.map((one) => `${String(one['message'])}: ${String(one['details'])}`).join('\n');
  const error = {
    type: 'prompt_outputs_failed_validation',
    message: 'Prompt outputs failed validation',
    details,
    extra_info: {},
  };
  const node_errors = Object.fromEntries(
    [...errors].map(([id, list]): [string, JsonObject] => [
      id,
      { errors: list, dependent_outputs: outputs, class_type: classOf(prompt, id) },
    ]),
  );
  return { refusal: { error, node_errors } };
}

export function classOf(prompt: JsonObject, id: string): string {
  const node = prompt[id];
  return isObject(node) ? String(node['class_type']) : '';
}

export function inputsOf(prompt: JsonObject, id: string): JsonObject {
  const node = prompt[id];
  const inputs = isObject(node) ? node['inputs'] : undefined;
  return isObject(inputs) ? inputs : {};
}

function isGood(
  prompt: JsonObject,
  id: string,
  hasFile: (name: string) => boolean,
  errors: Map<string, JsonObject[]>,
): boolean {
  const inputs = inputsOf(prompt, id);
  const own: JsonObject[] = [];
  let is_good = true;
  for (const [field, rule] of Object.entries(nodes[classOf(prompt, id)]?.fields ?? {})) {
    const value = inputs[field];
    const info = { input_name: field, received_value: value ?? null };
    if (value === undefined) {
      own.push({
        type: 'required_input_missing',
        message: 'Required input is missing',
        details: field,
        extra_info: { input_name: field },
      });
    } else if (Array.isArray(value)) {
      const [source] = value;
      if (value.length !== 2 || typeof source !== 'string' || !(source in prompt)) {
        own.push({
          type: 'bad_linked_input',
          message: 'Bad linked input, must be a length-2 list of [node_id, slot_index]',
          details: field,
          extra_info: info,
        });
      } else if (!isGood(prompt, source, hasFile, errors)) is_good = false;
    } else {
      const wrong = mistake(rule, field, value, hasFile);
      if (wrong) own.push({ ...wrong, extra_info: info });
    }
  }
  if (own.length > 0) errors.set(id, own);
  return is_good && own.length === 0;
}

function mistake(
  rule: FieldRule,
  field: string,
  value: Json,
  hasFile: (name: string) => boolean,
): JsonObject | undefined {
  switch (rule.type) {
    case 'INT':
    case 'FLOAT': {
      const number =
        typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? Number(value) : NaN;
      if (Number.isNaN(number)) {
        const message = `Failed to convert an input value to a ${rule.type} value`;
        return { type: 'invalid_input_type', message, details: `${field}, ${String(value)}, invalid literal` };
      }
      const { min = -Infinity, max = Infinity } = rule;
      if (number < min)
        return {
          type: 'value_smaller_than_min',
          message: `Value ${number} smaller than min of ${min}`,
          details: field,
        };
      return number > max
        ? { type: 'value_bigger_than_max', message: `Value ${number} bigger than max of ${max}`, details: field }
        : undefined;
    }
    case 'LIST':
      if (rule.values.includes(String(value))) return undefined;
      return {
        type: 'value_not_in_list',
        message: 'Value not in list',
        details: `${field}: '${String(value)}' not in ['${rule.values.join("', '")}']`,
      };
    case 'FILE':
      if (hasFile(String(value))) return undefined;
      return {
        type: 'custom_validation_failed',
        message: 'Custom validation failed for node',
        details: `${field} - Invalid image file: ${String(value)}`,
      };
    default:
      return undefined;
  }
}
