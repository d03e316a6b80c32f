import { multiplied } from '../margin.ts';
import type { JsonObject, PriceRow, Unit } from '../model.ts';
import type { ModelEntry, PriceEntry, RouteEntry } from '../schema.ts';
import { token_units, type ListedModel } from './listed.ts';

export type EntryOptions = {
  /** Ours, over which the model is run. */
  provider: string;
  /** Before the upstream's name, for the id; the name itself where it begins with it. */
  prefix: string;
  /** Factor on the provider's prices, a decimal text. */
  margin: string;
  /** The options of routes over this provider. */
  options: NonNullable<RouteEntry['options']>;
  source: { url: string; date: string } | undefined;
};

const id_length_max = 128;
const description_length_max = 400;

/** A model of a `medley.yaml` out of a list's; undefined if it is of no kind that a list describes well enough. */
export function entryOf(
  listed: ListedModel,
  { provider, prefix, margin, options, source }: EntryOptions,
): ModelEntry | undefined {
  const { upstream_model, kind, name, description, created, retires, replaced_by, max_output_tokens, context_tokens } =
    listed;
  const id = idOf(upstream_model, prefix);
  if (kind === 'other' || id === undefined) return undefined;
  const cost = listed.price.filter(({ unit }) => units_of[kind].includes(unit));
  const is_chat = kind === 'chat';
  const successor = replaced_by === undefined ? undefined : idOf(replaced_by, prefix);
  return {
    id,
    kind,
    ...(name !== undefined && { name: name.slice(0, 200) }),
    ...(description !== undefined && { description: shortened(description) }),
    ...(created !== undefined && { created }),
    ...(retires !== undefined && {
      retires,
      ...(successor !== undefined && successor !== id && { replaced_by: successor }),
    }),
    ...(is_chat && { capabilities: [...listed.capabilities] }),
    ...(kind === 'image' && image_parts),
    ...(context_tokens !== undefined && { limits: { context_tokens } }),
    ...(is_chat && max_output_tokens !== undefined && { max_output_tokens }),
    ...(cost.length > 0 && { price: cost.map((row) => rowOf(row, margin)) }),
    ...(cost.length > 0 && source && { price_source: source }),
    routes: [
      {
        provider,
        upstream_model,
        ...(kind === 'image' && image_route),
        ...(is_chat && Object.keys(options).length > 0 && { options }),
        ...(cost.length > 0 && { cost: cost.map((row) => rowOf(row, '1')), ...(source && { cost_source: source }) }),
      },
    ],
  };
}

/** Units of prices that mean something for models of each kind. */
const units_of: { readonly [kind in Exclude<ListedModel['kind'], 'other'>]: readonly Unit[] } = {
  chat: [...token_units, 'request'],
  embedding: ['input_token', 'request'],
  rerank: ['search_unit', 'input_token', 'request'],
  moderation: ['input_token', 'request'],
  image: ['image', 'request'],
};

/** Fields that the input of nearly every model for images has. */
export const image_fields = {
  prompt: { type: 'string', title: 'Prompt', description: 'What the image shows.', minLength: 1, maxLength: 8000 },
  size: {
    type: 'string',
    title: 'Size',
    description: 'Width and height in pixels, such as 1024x1024.',
    pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$',
    default: '1024x1024',
  },
  n: {
    type: 'integer',
    title: 'Number of images',
    description: 'Each is paid for.',
    minimum: 1,
    maximum: 4,
    default: 1,
  },
} satisfies { [field: string]: JsonObject };

/** The input that every server of OpenAI's style takes for images. */
const image_input: JsonObject = {
  type: 'object',
  required: ['prompt'],
  additionalProperties: false,
  properties: image_fields,
};

const image_parts: Pick<ModelEntry, 'input_schema' | 'estimate'> = {
  input_schema: image_input,
  estimate: { image: '$input.n' },
};

const image_route: Pick<RouteEntry, 'timeout' | 'input'> = {
  timeout: { start: '5m', total: '6m' }, // the answer is the image
  input: { prompt: '$input.prompt', size: '$input.size', n: '$input.n' },
};

/** Returns the id under which callers find a model; undefined if its name makes none. */
export function idOf(upstream_model: string, prefix: string): string | undefined {
  const id = upstream_model.startsWith(prefix) ? upstream_model : prefix + upstream_model;
  const plain = id.replaceAll(/[^A-Za-z0-9._:/-]/g, '-');
  return plain.length > id_length_max || plain.split('/').some((part) => /^\.{0,2}$/.test(part)) ? undefined : plain;
}

function rowOf({ unit, amount, per, above_input_tokens }: PriceRow, margin: string): PriceEntry {
  return {
    unit,
    per,
    amount: margin === '1' ? amount : multiplied(amount, margin),
    ...(above_input_tokens !== undefined && { above_input_tokens }),
  };
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= description_length_max ? line : `${line.slice(0, description_length_max - 1)}…`;
}
