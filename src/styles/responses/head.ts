import type { Json, JsonObject } from '../../catalog/model.ts';
import { objectSchema, type ApiError } from '../../errors.ts';
import type { ChatRequest } from '../codec.ts';
import {
  memberOf,
  isObject,
  mistake,
  readBoolean,
  readCount,
  readList,
  readObject,
  readText,
  wrongType,
} from '../fields.ts';
import { readModelOrFirst } from '../fallbacks.ts';
import { routing_fields } from '../request.ts';
import { showValue } from '../../lib/show-value.ts';
import { usual_tiers } from '../allowed.ts';
import { wantsCost } from '../completions/openrouter.ts';

const any_object = { type: 'object', properties: {}, additionalProperties: true };

/** A body as JSON Schema: what the service itself looks at. */
export const responses_body = objectSchema(
  {
    model: { type: 'string', description: 'Model id.', examples: ['sandbox/chat'] },
    input: {
      anyOf: [{ type: 'string' }, { type: 'array', items: any_object, minItems: 1 }],
      description: 'A text, or the whole conversation in items of this style.',
    },
    instructions: { type: 'string', description: 'The system prompt.' },
    max_output_tokens: { type: 'integer', minimum: 1 },
    stream: { type: 'boolean', description: 'Answer as server-sent events.' },
    tools: { type: 'array', items: any_object, description: 'Functions and the like, and tools of providers.' },
    ...routing_fields,
  },
  ['instructions', 'max_output_tokens', 'stream', 'tools', 'models', 'provider'],
);

/**
 * Reads what routing and money need of a body of `/v1/responses`, and refuses what would cost money without a
 * price or reach what an upstream keeps. Throws ApiError 400 naming the field.
 */
export function readHead(body: JsonObject): Omit<ChatRequest, 'style' | 'body'> {
  const model = readModelOrFirst(body);
  checkStored(body);
  checkServiceTier(body);
  checkTools(body, 'tools');
  checkInput(body);
  readText(body, 'instructions', 'instructions');
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  if (readObject(body, 'stream_options', 'stream_options') && !stream)
    throw mistake('stream_options', 'is only allowed with "stream": true');
  const max_tokens = readCount(body, 'max_output_tokens', 'max_output_tokens', 1);
  const wants_cost = wantsCost(body) && { wants_cost: true };
  return { model, stream, wants_usage: true, ...wants_cost, max_tokens, thinking_budget: 0, n: 1 };
}

/** Fields about what was stored before, or is to run and stay behind. */
const stored: Readonly<Record<string, string>> = {
  previous_response_id: 'is not offered: nothing is stored here, send the whole conversation in input',
  conversation: 'is not offered: nothing is stored here, send the whole conversation in input',
  prompt: 'is not offered: no prompts are stored here, send instructions and input',
};

function checkStored(body: JsonObject): void {
  for (const [field, why] of Object.entries(stored))
    if (memberOf(body, field) !== undefined) throw notOffered(field, why);
  if (readBoolean(body, 'background', 'background') === true)
    throw notOffered('background', 'must be false: nothing is stored for this account');
  const cache = readObject(body, 'prompt_cache_options', 'prompt_cache_options');
  if (cache && memberOf(cache, 'comparison_response_id') !== undefined)
    throw notOffered('prompt_cache_options.comparison_response_id', 'is not offered: nothing is stored here');
}

function checkInput(body: JsonObject): void {
  const input = memberOf(body, 'input');
  if (input === undefined) throw mistake('input', 'is required');
  if (typeof input === 'string') return;
  if (!Array.isArray(input)) throw wrongType('input', 'a string or an array', input);
  if (input.length === 0) throw mistake('input', 'must not be empty');
  for (const [index, item] of input.entries()) checkItem(item, `input[${index}]`);
}

function checkItem(item: Json, at: string): void {
  if (!isObject(item)) throw wrongType(at, 'an object', item);
  const type = memberOf(item, 'type');
  if (isReference(item) && !isOfReasoning(item)) {
    const why = 'names an item by its id, but nothing is stored here: send the item itself (in SDKs, store: false)';
    throw notOffered(at, why);
  }
  if (type !== 'mcp_list_tools') checkTools(item, `${at}.tools`);
  checkFiles(item, at);
  for (const field of ['content', 'output']) {
    const { [field]: value } = item;
    if (isObject(value)) checkFiles(value, `${at}.${field}`);
    if (!Array.isArray(value)) continue;
    for (const [index, part] of value.entries()) if (isObject(part)) checkFiles(part, `${at}.${field}[${index}]`);
  }
}

/** Names an item by its id alone. */
export function isReference(item: JsonObject): boolean {
  const type = memberOf(item, 'type');
  return type === 'item_reference' || (type === undefined && memberOf(item, 'role') === undefined);
}

/** The conversation is whole without what its model thought. */
function isOfReasoning({ id }: JsonObject): boolean {
  return typeof id === 'string' && id.startsWith('rs_');
}

/** Files and containers lie in the account that all callers share. */
function checkFiles(holder: JsonObject, at: string): void {
  for (const field of ['file_id', 'container_id']) {
    if (memberOf(holder, field) === undefined) continue;
    throw notOffered(`${at}.${field}`, 'is not offered: send the content itself, as a data URL or a link');
  }
}

/** The 400 for what is not sold here. To be thrown. */
function notOffered(at: string, why: string): ApiError {
  return mistake(at, why, 'unsupported_field');
}

/** Throws ApiError 400 for a tier with a price of its own. */
function checkServiceTier(body: JsonObject): void {
  const tier = memberOf(body, 'service_tier');
  if (tier === undefined || usual_tiers.includes(tier)) return;
  throw notOffered('service_tier', `must be auto or default: ${showValue(tier)} has separate prices at the provider`);
}

/** Throws ApiError 400 for what is no list of tools; which of them a model gets is decided per route. */
function checkTools(holder: JsonObject, at: string): void {
  for (const [index, tool] of (readList(holder, 'tools', at) ?? []).entries())
    if (isObject(tool) && tool['type'] === 'namespace') checkTools(tool, `${at}[${index}].tools`);
}
