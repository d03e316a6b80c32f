import { idOf, image_fields } from '../../../catalog/lists/entry.ts';
import { ListError, type ListedModel } from '../../../catalog/lists/listed.ts';
import { isObject, type JsonObject } from '../../../catalog/model.ts';
import type { ModelEntry } from '../../../catalog/schema.ts';
import { textIn } from '../../http/reading.ts';
import type { ListModels, NamingOptions, OfferedModel } from '../../offer/offer.ts';
import { readUpstreamList } from '../../offer/read-list.ts';
import { current_checkpoint } from './body.ts';
import { default_base_url, keyHeaders } from './place.ts';

/** Lists the checkpoints of the machine, and the one that is loaded. */
export const listModels: ListModels = async (config, { guard }, { signal }) => {
  const base_url = config.base_url ?? default_base_url;
  const place = {
    config: { ...config, base_url },
    guard,
    headers: keyHeaders(config),
    path: '/sdapi/v1/sd-models',
    signal,
  };
  const listed = await readUpstreamList({ ...place, read: readCheckpoints });
  const loaded: ListedModel = {
    upstream_model: current_checkpoint,
    kind: 'image',
    name: 'The checkpoint that is loaded',
    capabilities: [],
    price: [],
  };
  return [...listed, loaded].map(offered);
};

/** AUTOMATIC1111 and Forge name a checkpoint `model_name`, SD.Next `name`. */
function readCheckpoints(text: string): ListedModel[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ListError('is no JSON.');
  }
  if (!Array.isArray(value)) throw new ListError('is no list of checkpoints.');
  return value.flatMap((item: unknown): ListedModel[] => {
    if (!isObject(item)) return [];
    const upstream_model = textIn(item, 'model_name') ?? textIn(item, 'name') ?? textIn(item, 'title');
    const name = textIn(item, 'title');
    if (upstream_model === undefined) return [];
    return [{ upstream_model, kind: 'image', ...(name !== undefined && { name }), capabilities: [], price: [] }];
  });
}

function offered({ upstream_model, name }: ListedModel): OfferedModel {
  return {
    upstream_model,
    kind: 'image',
    ...(name !== undefined && { name }),
    entry: (naming, kind) => (kind === 'image' ? entryOf(upstream_model, name, naming) : undefined),
  };
}

function entryOf(
  upstream_model: string,
  name: string | undefined,
  { provider, prefix }: NamingOptions,
): ModelEntry | undefined {
  const id = idOf(upstream_model, prefix);
  if (id === undefined) return undefined;
  return {
    id,
    kind: 'image',
    ...(name !== undefined && { name: name.slice(0, 200) }),
    input_schema,
    estimate: { image: '$input.n' },
    routes: [{ provider, upstream_model, timeout: { start: '15m', total: '16m' } }], // the answer is the image
  };
}

/** 10 to 2048. */
const side = '(?:[1-9][0-9]{1,2}|1[0-9]{3}|20[0-3][0-9]|204[0-8])';

const file = { type: 'string', 'x-media': 'image' };

const input_schema: JsonObject = {
  type: 'object',
  required: ['prompt'],
  additionalProperties: false,
  properties: {
    prompt: image_fields.prompt,
    negative_prompt: {
      type: 'string',
      title: 'Negative prompt',
      description: 'What it does not show.',
      maxLength: 8_000,
    },
    size: { ...image_fields.size, pattern: `^${side}x${side}$` },
    n: image_fields.n,
    steps: { type: 'integer', title: 'Steps', minimum: 1, maximum: 60, default: 25 },
    cfg_scale: { type: 'number', title: 'Guidance', minimum: 1, maximum: 30, default: 7 },
    seed: { type: 'integer', title: 'Seed', minimum: 0, maximum: 4_294_967_295 },
    image: { ...file, title: 'Image', description: 'Is changed in place of a new one.' },
    mask: { ...file, title: 'Mask', description: 'White is what of the image is changed.' },
    denoising_strength: { type: 'number', title: 'Strength of the change', minimum: 0, maximum: 1 },
  },
};
