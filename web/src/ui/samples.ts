import type { ModelView } from '../../../src/dashboard/views/models.ts';
import type { ChatStyle } from '../../../src/dashboard/views/playground.ts';
import { isRecord } from '../api.ts';
import { literal, samplesIn, type Sample } from './languages.ts';

/** Programs that make one call of a model, for whoever wants to do by code what they see here. */

type SampleRequest = { base_url: string; model: Pick<ModelView, 'id' | 'modality'>; input: Record<string, unknown> };

/** Returns the samples of every kind of model but chat, which has samples by style. */
export function samplesOf({ base_url, model, input }: SampleRequest): Sample[] {
  const body = { model: model.id, ...input };
  if (model.modality === 'embedding') return embeddingSamples(base_url, body);
  if (model.modality === 'rerank') return rerankSamples(base_url, body);
  if (model.modality === 'moderation') return moderationSamples(base_url, body);
  return mediaSamples(base_url, model, input);
}

function mediaSamples(base_url: string, model: SampleRequest['model'], whole: Record<string, unknown>): Sample[] {
  const input = shortened(whole);
  const url = `${base_url}/v1/generate?wait=300`;
  const body = { model: model.id, input };
  const samples = samplesIn({ url, body, shown: [['status'], ['output'], ['cost']] });
  const { prompt, n } = input;
  if (model.modality !== 'image' || typeof prompt !== 'string' || !isPlain(input)) return samples;
  const call = { model: model.id, prompt, ...(n !== undefined && { n }) };
  const text = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: process.env.MEDLEY_API_KEY });
const { data } = await client.images.generate(${literal(call, 0)});
console.log(data[0].url ?? data[0].b64_json);`;
  return [...samples, { name: 'OpenAI SDK', text }];
}

/** Without input images, for which the SDK has another call. */
function isPlain(input: Record<string, unknown>): boolean {
  return Object.values(input).every((value) => typeof value !== 'object');
}

/** For choosing between the styles. */
export const style_choices: { value: ChatStyle; label: string }[] = [
  { value: 'completions', label: 'Chat completions (OpenAI)' },
  { value: 'messages', label: 'Messages (Anthropic)' },
];

/** A call of a chat model in one style, by this body. */
export function chatSamples(base_url: string, style: ChatStyle, whole: Record<string, unknown>): Sample[] {
  const body = shortened(whole);
  if (style === 'messages') {
    const url = `${base_url}/v1/messages`;
    const text = `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({ baseURL: '${base_url}', apiKey: process.env.MEDLEY_API_KEY });
const answer = await client.messages.create(${literal(body, 0)});
console.log(answer.content);`;
    return [...samplesIn({ url, body, shown: [['content']] }), { name: 'Anthropic SDK', text }];
  }
  const url = `${base_url}/v1/chat/completions`;
  const text = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: process.env.MEDLEY_API_KEY });
const answer = await client.chat.completions.create(${literal(body, 0)});
console.log(answer.choices[0].message.content);`;
  return [...samplesIn({ url, body, shown: [['choices', 0, 'message', 'content']] }), { name: 'OpenAI SDK', text }];
}

/** Base64 of files has no line breaks and no end: whoever reads the program sees where it goes. */
const shown_max = 4_000;

function shortened(body: Record<string, unknown>): Record<string, unknown> {
  const text = JSON.stringify(body, (_name, value: unknown) =>
    typeof value === 'string' && value.length > shown_max && !/\s/.test(value)
      ? `${value.slice(0, 40)}… (${value.length} characters)`
      : value,
  );
  const read: unknown = JSON.parse(text);
  return isRecord(read) ? read : {};
}

function embeddingSamples(base_url: string, body: Record<string, unknown>): Sample[] {
  const url = `${base_url}/v1/embeddings`;
  const openai = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: process.env.MEDLEY_API_KEY });
const { data } = await client.embeddings.create(${literal(body, 0)});
console.log(data[0].embedding.length);`;
  return [...samplesIn({ url, body, shown: [['data', 0, 'embedding']] }), { name: 'OpenAI SDK', text: openai }];
}

function rerankSamples(base_url: string, body: Record<string, unknown>): Sample[] {
  const url = `${base_url}/v1/rerank`;
  const cohere = `import { CohereClientV2 } from 'cohere-ai';

const client = new CohereClientV2({ environment: '${base_url}', token: process.env.MEDLEY_API_KEY });
const { results } = await client.rerank(${literal(withCamelCase(body), 0)});
console.log(results);`;
  return [...samplesIn({ url, body, shown: [['results']] }), { name: 'Cohere SDK', text: cohere }];
}

/** The names of Cohere's SDK, which has no documents in its answers. */
function withCamelCase(body: Record<string, unknown>): Record<string, unknown> {
  const { top_n, return_documents: _, ...rest } = body;
  return { ...rest, ...(top_n !== undefined && { topN: top_n }) };
}

function moderationSamples(base_url: string, body: Record<string, unknown>): Sample[] {
  const url = `${base_url}/v1/moderations`;
  const openai = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base_url}/v1', apiKey: process.env.MEDLEY_API_KEY });
const { results } = await client.moderations.create(${literal(body, 0)});
console.log(results[0].flagged, results[0].categories);`;
  return [...samplesIn({ url, body, shown: [['results']] }), { name: 'OpenAI SDK', text: openai }];
}

type Shaped = Pick<ModelView, 'modality' | 'input_schema'>;

/** An input to begin with: what is required, by its example or default. */
export function exampleInput(model: Shaped): Record<string, unknown> {
  return requiredInput(model, exampleOf);
}

/** An input that is whole, for a program to be read: what has no example is made up. */
export function wholeInput(model: Shaped): Record<string, unknown> {
  return requiredInput(model, (field) => exampleOf(field) ?? madeUp(field));
}

function requiredInput(model: Shaped, valueOf: (field: Record<string, unknown>) => unknown): Record<string, unknown> {
  if (model.modality === 'chat') return { messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 300 };
  if (model.modality === 'embedding') return { input: ['A red bicycle', 'A blue car'] };
  if (model.modality === 'rerank')
    return { query: 'A red bicycle', documents: ['Two blue cars', 'A bicycle, painted red', 'Bicycle lanes'] };
  if (model.modality === 'moderation') return { input: 'A red bicycle' };
  const { required, properties } = model.input_schema;
  const names = Array.isArray(required) ? required.map(String) : [];
  const fields = isRecord(properties) ? properties : {};
  return Object.fromEntries(
    names.flatMap((name) => {
      const field = fields[name];
      const example = isRecord(field) ? valueOf(field) : undefined;
      return example === undefined ? [] : [[name, example]];
    }),
  );
}

function exampleOf(field: Record<string, unknown>): unknown {
  const { examples, default: usual, enum: choices } = field;
  if (Array.isArray(examples) && examples.length > 0) return examples[0];
  if (usual !== undefined) return usual;
  return Array.isArray(choices) ? choices[0] : undefined;
}

function madeUp({ type, 'x-media': media, items, minimum }: Record<string, unknown>): unknown {
  if (type === 'array') return isRecord(items) ? [exampleOf(items) ?? madeUp(items)] : [];
  if (type === 'integer' || type === 'number') return minimum ?? 1;
  if (type === 'boolean') return true;
  if (type !== 'string') return undefined;
  return typeof media === 'string' ? `https://example.com/${media}` : 'A red bicycle';
}
