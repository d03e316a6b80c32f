import { stringify } from 'yaml';
import { fragmentAt } from '../lib/json-pointer.ts';
import { compileSchema, schemaMistakes } from './input-schema.ts';
import { media_keyword } from './media-fields.ts';
import { isObject, type Json, type JsonObject, type MediaKind, type PriceSource, type Unit } from './model.ts';

/** A provider's own description of a model, made into a block of a `medley.yaml` that an operator finishes. */

export type Draft = {
  id: string;
  kind: MediaKind;
  name: string;
  description: string;
  /** The input's schema, cleaned. */
  input_schema: JsonObject;
  provider: string;
  adapter: string;
  api_key: string;
  upstream_model: string;
  /** The source of the schema, and the page of its price. */
  source: string;
  price_page: string;
  /** Prices for callers and the cost of a run, where the provider says them; `note`: the reason for which they are none here. */
  priced?: Priced | { note: string };
};

/** A row of a price, as it is written. */
export type PricedRow = { unit: Unit; per?: number; amount: string };

type Priced = { price: PricedRow[]; cost: PricedRow[]; source: PriceSource };

const depth_max = 12;
const description_length_max = 400;
const pattern_length_max = 200;

/** Keywords that mean the same to us; everything else is left out. */
const copied_keywords = [
  'type',
  'title',
  'description',
  'enum',
  'const',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'uniqueItems',
] as const;

/** The input schema of a model out of its provider's: one object with plain fields, in the provider's order. */
export function cleanInput(schema: JsonObject, root: JsonObject): JsonObject {
  const whole = resolved(schema, root, 0);
  const properties = isObject(whole['properties']) ? whole['properties'] : {};
  const ordered = Object.entries(properties).toSorted(([, a], [, b]) => orderOf(a) - orderOf(b));
  const fields = ordered.map(([name, field]): [string, JsonObject] => [name, cleanField(name, field, root)]);
  const { required } = whole;
  const names = Array.isArray(required) ? required.filter((name) => fields.some(([field]) => field === name)) : [];
  return {
    type: 'object',
    ...(names.length > 0 && { required: names }),
    additionalProperties: false,
    properties: Object.fromEntries(fields),
  };
}

function orderOf(field: Json): number {
  const order = isObject(field) ? field['x-order'] : undefined;
  return typeof order === 'number' ? order : Infinity;
}

/** References and single branches are put in place; what may be null may be left out instead. */
function resolved(schema: Json | undefined, root: JsonObject, depth: number): JsonObject {
  if (!isObject(schema) || depth > depth_max) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = schema;
  const target = typeof $ref === 'string' ? fragmentAt(root, $ref) : undefined;
  const parts = [...objectsIn([target]), ...objectsIn(allOf)];
  const choices = [...objectsIn(anyOf), ...objectsIn(oneOf)].filter((part) => part['type'] !== 'null');
  const single = choices.length === 1 ? choices : [];
  const base = [...parts, ...single].reduce<JsonObject>(
    (all, part) => ({ ...all, ...resolved(part, root, depth + 1) }),
    {},
  );
  return { ...base, ...own, ...(choices.length > 1 && { anyOf: choices }) };
}

function objectsIn(value: unknown): JsonObject[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  return list.filter((each) => isObject(each));
}

function cleanField(name: string, field: Json, root: JsonObject): JsonObject {
  const whole = resolved(field, root, 0);
  const media = mediaOf(name, whole, root);
  const cleaned = cleanValue(whole, root, 0);
  if (media) return withMedia(cleaned, media);
  const value = whole['default'];
  return value !== undefined && value !== null && fits(cleaned, value) ? { ...cleaned, default: value } : cleaned;
}

function cleanValue(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  const { items, properties, anyOf, pattern, description, required } = schema;
  const deeper = (below: Json) => cleanValue(resolved(below, root, depth + 1), root, depth + 1);
  const is_deep = depth >= depth_max;
  return {
    ...Object.fromEntries(copied_keywords.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]]))),
    ...(typeof description === 'string' && { description: shortened(description) }),
    ...(typeof pattern === 'string' && pattern.length <= pattern_length_max && { pattern }),
    ...(isObject(items) && !is_deep && { items: deeper(items) }),
    ...(Array.isArray(anyOf) && !is_deep && { anyOf: anyOf.map(deeper) }),
    ...(isObject(properties) &&
      !is_deep && {
        properties: Object.fromEntries(Object.entries(properties).map(([key, below]) => [key, deeper(below)])),
        ...(Array.isArray(required) && required.length > 0 && { required }),
      }),
  };
}

function shortened(text: string): string {
  const plain = text.replaceAll(/\s+/g, ' ').trim();
  return plain.length <= description_length_max ? plain : `${plain.slice(0, description_length_max - 1)}…`;
}

/** A default that its own field refuses would be sent in place of what the provider takes. */
function fits(field: JsonObject, value: Json): boolean {
  const schema = { type: 'object', properties: { field } };
  return schemaMistakes(schema).length === 0 && compileSchema(schema, true)({ field: value });
}

const media_words: readonly [MediaKind, RegExp][] = [
  ['video', /video|film|clip/i],
  ['audio', /audio|song|voice_?file|speech_?file|music_?file/i],
  ['image', /image|picture|photo|mask|frame/i],
];

/**
 * Guesses the kind of file of a field by its name. Only a text that is a link can be a file, or a list of such
 * texts.
 */
function mediaOf(name: string, field: JsonObject, root: JsonObject): MediaKind | undefined {
  const items = resolved(field['items'], root, 1);
  const one = field['type'] === 'array' ? items : field;
  const is_link = one['format'] === 'uri' || /_urls?$/.test(name);
  if (one['type'] !== 'string' || !is_link || one['enum'] !== undefined) return undefined;
  return media_words.find(([, word]) => word.test(name))?.[0];
}

function withMedia(field: JsonObject, kind: MediaKind): JsonObject {
  if (field['type'] !== 'array') return { ...field, [media_keyword]: kind };
  return { ...field, items: { type: 'string', [media_keyword]: kind } };
}

/** A whole `medley.yaml` with this one model. The price is left to the operator where the provider does not say it. */
export function writeDraft(draft: Draft, today: string): string {
  const { id, kind, name, description, input_schema, provider, adapter, api_key, upstream_model } = draft;
  const fields = Object.keys(input_schema['properties'] ?? {});
  const head = { id, kind, name, ...(description !== '' && { description: shortened(description) }), input_schema };
  const estimate = estimateOf(kind, input_schema);
  const input = Object.fromEntries(fields.map((field) => [field, `$input.${field}`]));
  const priced = usable(draft.priced, estimate);
  const tail = {
    ...(priced && { price: priced.price, price_source: priced.source }),
    ...(estimate && { estimate }),
    routes: [{ provider, upstream_model, input, ...(priced && { cost: priced.cost, cost_source: priced.source }) }],
  };
  return [
    `# Draft of ${today} from ${draft.source}.`,
    `# To do: ${priced ? '' : 'the price; '}names and limits of fields as your callers should see them. What stands under \`models\` may`,
    '# go into your own file.',
    'version: 1',
    '',
    yaml({ providers: { [provider]: { adapter, api_key } } }, 0),
    'models:',
    `  - ${yaml(head, 4).trimStart()}`,
    `    # Prices for callers. ${draft.price_page} has the prices of the provider.`,
    ...(priced ? [] : unpricedLines(draft)),
    yaml(tail, 4),
  ].join('\n');
}

/** A price by units that the input does not decide would hold nothing: the operator says first how many there are. */
function usable(priced: Draft['priced'], estimate: JsonObject | undefined): Priced | undefined {
  if (!priced || 'note' in priced) return undefined;
  const is_certain = priced.price.every(({ unit }) => unit === 'request' || estimate?.[unit] !== undefined);
  return is_certain ? priced : undefined;
}

function unpricedLines({ kind, priced }: Draft): string[] {
  if (priced && 'price' in priced) {
    const rows = priced.price.map(({ unit, per = 1, amount }) => `{ unit: ${unit}, per: ${per}, amount: "${amount}" }`);
    return [
      '    # To do: an estimate of these units, out of the input.',
      '    # price:',
      ...rows.map((row) => `    #   - ${row}`),
    ];
  }
  const note = priced ? [`    # ${priced.note}`] : [];
  return [...note, '    # price:', `    #   - { unit: ${kind === 'image' ? 'image' : 'second'}, amount: "0.00" }`];
}

function yaml(value: JsonObject, indent: number): string {
  const text = stringify(value, { lineWidth: 120 - indent, aliasDuplicateObjects: false }).trimEnd();
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(indent));
}

/** Returns the estimate's field if one names the number of images or seconds. */
function estimateOf(kind: MediaKind, { properties, required }: JsonObject): JsonObject | undefined {
  const [unit, names] = kind === 'image' ? ['image', counts] : ['second', durations];
  const fields = isObject(properties) ? properties : {};
  const match = names.find((name) => {
    const field = fields[name];
    if (!isObject(field)) return false;
    const is_number = field['type'] === 'integer' || field['type'] === 'number';
    const is_certain = field['default'] !== undefined || (Array.isArray(required) && required.includes(name));
    return is_number && is_certain;
  });
  return match === undefined ? undefined : { [unit]: `$input.${match}` };
}

const counts = ['num_outputs', 'num_images', 'number_of_images', 'n'];
const durations = ['duration', 'duration_seconds', 'seconds'];
