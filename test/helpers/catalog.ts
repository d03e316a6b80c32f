/** Pieces of a test's medley.yaml. What a test does not state has a value that suits most tests. */

type MediaModel = {
  id: string;
  /** Each a YAML mapping, such as `{ provider: sandbox }`. */
  routes: readonly string[];
  kind?: 'image' | 'video' | 'audio';
  /** The input_schema as a YAML mapping. */
  schema?: string;
  /** The price of an image (the default is 0.03), or rows, each a YAML mapping. */
  price?: string | readonly string[];
  /** Further fields, such as `estimate: { image: 2 }`. */
  more?: readonly string[];
};

export const optional_prompt = '{ type: object, properties: { prompt: { type: string } } }';
export const required_prompt = '{ type: object, required: [prompt], properties: { prompt: { type: string } } }';

export const required_audio =
  '{ type: object, required: [audio], properties: { audio: { type: string, x-media: audio } } }';

/** Returns one item of `models:`, with a line break before it. */
export function mediaModel(model: MediaModel): string {
  const { id, routes, kind = 'image', schema = '{ type: object }', price = '0.03', more = [] } = model;
  const prices = typeof price === 'string' ? [`{ unit: image, amount: "${price}" }`] : price;
  const fields = [`id: ${id}`, `kind: ${kind}`, `input_schema: ${schema}`, `price: [${prices.join(', ')}]`];
  return `\n  - ${[...fields, ...more, `routes: [${routes.join(', ')}]`].join('\n    ')}`;
}

export type Limits = {
  generate_per_minute?: number;
  chat_per_minute?: number;
  chat_at_once?: number;
  other_per_minute?: number;
  failed_per_24h?: number;
  waiting_tasks?: number;
};

/** Returns the `limits:` of medley.yaml: requests are as good as unlimited unless the test states a limit. */
export function limits(stated: Limits = {}): string {
  return `limits: ${JSON.stringify({ generate_per_minute: 100_000, other_per_minute: 100_000, ...stated })}`;
}

/** The medley.yaml of a service whose clients run on this machine and send files and webhooks from here. */
export const local_clients = `version: 1\nnet: { allow: ["127.0.0.0/8"] }\n${limits()}\n`;
