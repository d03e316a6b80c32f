import type { Json, MediaKind } from '../../../catalog/model.ts';
import type { DocumentFacts, DocumentField, FieldFacts, FieldType } from '../../offer/document.ts';
import { isFileField, seed_fields, type Workflow, type WorkflowNode } from './workflow.ts';

/** Fields of a workflow that callers may set, and which of them they usually do. */

const text_fields = ['text', 'prompt', 'string', 'value', 't5xxl', 'clip_l', 'clip_g', 'text_g', 'text_l'];

/** The order of a form. */
const first_names = ['prompt', 'negative_prompt', 'image', 'mask', 'video', 'audio'];

/** Returns all fields that are no links: what a form begins with, then the others in the order of the workflow. */
export function fieldsOf(workflow: Workflow, facts?: DocumentFacts): DocumentField[] {
  const rank = ({ name, is_suggested }: DocumentField) => {
    const place = is_suggested ? first_names.indexOf(name) : -1;
    return place === -1 ? first_names.length : place;
  };
  return allFields(workflow, facts).toSorted((a, b) => rank(a) - rank(b));
}

function allFields(workflow: Workflow, facts: DocumentFacts | undefined): DocumentField[] {
  const names = usualNames(workflow);
  const taken = new Map<string, number>();
  return [...workflow].flatMap(([id, node]) =>
    Object.entries(node.inputs).flatMap(([field, value]): DocumentField[] => {
      if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return [];
      const target = `${id}.${field}`;
      const usual = names.get(target);
      // The choices of a field for files are those of the machine.
      const own = isFileField(node, field) ? undefined : facts?.fields.get(target);
      return [
        {
          target,
          part: node.title ?? node.class_type,
          field,
          type: typeOf(node, field, { value, own }),
          value,
          name: uniqueName(usual ?? plainName(field), taken),
          is_suggested: usual !== undefined,
          ...limitsOf(field, value, own),
        },
      ];
    }),
  );
}

function uniqueName(name: string, taken: Map<string, number>): string {
  const count = (taken.get(name) ?? 0) + 1;
  taken.set(name, count);
  return count === 1 || name === 'prompt' ? name : `${name}_${count}`;
}

/** A field's name as a name of an input. */
function plainName(field: string): string {
  const plain = field
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^[^a-z]+|_+$/g, '');
  return plain === '' ? 'field' : field === 'batch_size' ? 'n' : plain.slice(0, 40);
}

type ValueOf = { value: string | number | boolean; own: FieldFacts | undefined };

function typeOf(node: WorkflowNode, field: string, { value, own }: ValueOf): FieldType {
  if (typeof value === 'string' && isFileField(node, field)) return fileKind(node, field);
  if (own && typeof value === primitives[own.type]) return own.type;
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'number') return isWhole(field, value) ? 'integer' : 'number';
  return 'text';
}

/** The JSON type of a value. */
const primitives: Record<FieldType, string> = {
  text: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  image: 'string',
  video: 'string',
  audio: 'string',
};

function limitsOf(
  field: string,
  value: string | number | boolean,
  own: FieldFacts | undefined,
): Pick<DocumentField, 'minimum' | 'maximum' | 'choices'> {
  if (typeof value === 'string') return own?.choices?.includes(value) ? { choices: own.choices } : {};
  if (typeof value !== 'number') return {};
  const sensible = maximumOf(field, value);
  const maximum = sensible === undefined ? undefined : Math.min(sensible, own?.maximum ?? Infinity);
  return {
    ...(own?.minimum !== undefined && own.minimum <= value && { minimum: own.minimum }),
    ...(maximum !== undefined && { maximum }),
  };
}

/** `cfg: 8` is a number that happens to be whole. */
function isWhole(field: string, value: number): boolean {
  return Number.isInteger(value) && /seed|steps|width|height|size|length|frames|count|batch|index/.test(field);
}

function fileKind({ class_type }: WorkflowNode, field: string): MediaKind {
  if (/video/i.test(class_type) || field === 'video') return 'video';
  return /audio/i.test(class_type) || field === 'audio' ? 'audio' : 'image';
}

/** A graphics card is busy for as long as a caller likes, unless a number ends somewhere. */
function maximumOf(field: string, value: number): number | undefined {
  if (seed_fields.has(field)) return undefined;
  if (/width|height/.test(field)) return Math.max(2_048, value);
  if (/batch/.test(field)) return Math.max(4, value);
  if (field === 'denoise') return 1;
  return Math.max(Math.abs(value) * 3, 1);
}

/** Names of the fields that callers usually set, by their targets. */
function usualNames(workflow: Workflow): Map<string, string> {
  const names = new Map<string, string>();
  for (const [target, name] of textNames(workflow)) if (!names.has(target)) names.set(target, name);
  let has_seed = false;
  let has_size = false;
  for (const [id, node] of workflow) {
    const { inputs, class_type } = node;
    for (const [field, value] of Object.entries(inputs)) {
      if (typeof value === 'string' && isFileField(node, field)) {
        names.set(`${id}.${field}`, /mask/i.test(class_type) ? 'mask' : fileKind(node, field));
      }
      if (seed_fields.has(field) && typeof value === 'number' && !has_seed) {
        has_seed = true;
        names.set(`${id}.${field}`, 'seed');
      }
    }
    if (has_size || !/latent|video/i.test(class_type)) continue;
    if (typeof inputs['width'] !== 'number' || typeof inputs['height'] !== 'number') continue;
    has_size = true;
    for (const field of ['width', 'height', 'length']) {
      if (typeof inputs[field] === 'number') names.set(`${id}.${field}`, field);
    }
  }
  return names;
}

/** The texts behind the links by which samplers get what to show and what not; else the first text of all. */
function textNames(workflow: Workflow): [string, string][] {
  const ways: [string, string][] = [
    ['negative', 'negative_prompt'],
    ['positive', 'prompt'],
    ['conditioning', 'prompt'],
  ];
  const named = ways.flatMap(([link, name]) =>
    [...workflow.values()].flatMap(({ inputs }) =>
      textsBehind(workflow, inputs[link], new Set()).map((target): [string, string] => [target, name]),
    ),
  );
  // A text that is behind both is that of the positive one: the other is made of it, such as by zeroes.
  const positive = new Set(named.flatMap(([target, name]) => (name === 'prompt' ? [target] : [])));
  const clear = named.filter(([target, name]) => name === 'prompt' || !positive.has(target));
  if (clear.length > 0) return clear;
  const first = [...workflow].flatMap(([id, node]) => ownTexts(id, node)).at(0);
  return first === undefined ? [] : [[first, 'prompt']];
}

/** Targets of the texts of the nearest nodes that have one, up the links. */
function textsBehind(workflow: Workflow, link: Json | undefined, seen: Set<string>): string[] {
  const [id] = Array.isArray(link) ? link : [];
  if (typeof id !== 'string' || seen.has(id)) return [];
  seen.add(id);
  const node = workflow.get(id);
  if (!node) return [];
  const own = ownTexts(id, node);
  if (own.length > 0) return own;
  const links = Object.entries(node.inputs).toSorted(([a], [b]) => rankOf(a) - rankOf(b));
  for (const [, value] of links) {
    const behind = textsBehind(workflow, value, seen);
    if (behind.length > 0) return behind;
  }
  return [];
}

function rankOf(field: string): number {
  const rank = text_fields.indexOf(field);
  return rank === -1 ? text_fields.length : rank;
}

function ownTexts(id: string, { inputs, class_type }: WorkflowNode): string[] {
  if (/load|save/i.test(class_type)) return [];
  return text_fields.filter((field) => typeof inputs[field] === 'string').map((field) => `${id}.${field}`);
}

/** Returns what a workflow makes, by the nodes that save. */
export function kindOf(workflow: Workflow): MediaKind {
  const classes = [...workflow.values()].map(({ class_type }) => class_type);
  if (classes.some((name) => /video.*(?:combine|save)|save.*(?:video|webm)/i.test(name))) return 'video';
  return classes.some((name) => /save.*audio/i.test(name)) ? 'audio' : 'image';
}
