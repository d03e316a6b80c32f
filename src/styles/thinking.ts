import type { Json, JsonObject } from '../catalog/model.ts';
import type { Effort } from './conversation.ts';
import { isObject } from './fields.ts';
import type { Quirks } from './quirks.ts';

/** Less thinking than this no upstream takes. */
export const budget_tokens_min = 1024;

/** Tokens that remain for the response itself when thinking is cut to fit; no call begins with fewer. */
export const answer_tokens_min = 256;

const budgets: ReadonlyMap<Effort, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 32_768],
  ['max', 63_999],
]);

const efforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** Reads an effort; undefined for whatever is no effort of ours. */
export function readEffort(value: Json | undefined): Effort | undefined {
  return efforts.find((effort) => effort === value);
}

/** Tokens to think with. */
export function budgetOf(effort: Effort): number {
  return budgets.get(effort) ?? budget_tokens_min;
}

export function effortOfBudget(budget_tokens: number): Effort {
  if (budget_tokens < 4096) return 'low';
  return budget_tokens < 16_384 ? 'medium' : 'high';
}

/**
 * Returns as much of a budget as fits into an answer of so many tokens, for upstreams that take any: half of a short
 * one.
 */
export function fitBudget(budget_tokens: number, max_tokens: number): number {
  return Math.min(budget_tokens, Math.max(max_tokens - answer_tokens_min, Math.floor(max_tokens / 2)));
}

/** Capabilities of the catalogue that name a model which thinks. */
const capabilities_of_thinking: ReadonlySet<string> = new Set(['thinking', 'reasoning']);

/** Bodies of one call: the caller's, and the one that the upstream is sent. */
type Bodies = { requested: JsonObject; sent: JsonObject };

/**
 * Returns true if the model may think in this call, by its catalogue, its route or the request: then it bills tokens
 * that nobody sees until it reports its usage. An upstream that is sent "no thinking" is believed, unless it always
 * thinks.
 */
export function mayReason(capabilities: readonly string[], quirks: Quirks, { requested, sent }: Bodies): boolean {
  if (quirks.thinking === 'always') return true;
  const thinking = requestedThinking(sent);
  if (thinking !== undefined) return thinking === 'on';
  return requestedThinking(requested) === 'on' || capabilities.some((name) => capabilities_of_thinking.has(name));
}

/**
 * Returns undefined where the body says nothing of thinking, in any style or vendor's dialect of one. Where it says
 * both, nobody knows which of them the upstream reads: then it may think.
 */
function requestedThinking({ additionalModelRequestFields: more, ...body }: JsonObject): 'on' | 'off' | undefined {
  const fields = isObject(more) ? { ...body, ...more } : body;
  const { reasoning_effort, reasoning, thinking, enable_thinking, generationConfig, reasoningConfig } = fields;
  const config = isObject(generationConfig) ? generationConfig['thinkingConfig'] : undefined;
  const wishes: boolean[] = [];
  if (typeof reasoning_effort === 'string') wishes.push(reasoning_effort !== 'none');
  if (isObject(reasoning)) wishes.push(reasoning['effort'] !== 'none' && reasoning['enabled'] !== false);
  if (isObject(thinking)) wishes.push(thinking['type'] !== 'disabled');
  if (isObject(reasoningConfig)) wishes.push(reasoningConfig['type'] !== 'disabled');
  if (typeof enable_thinking === 'boolean') wishes.push(enable_thinking);
  if (isObject(config)) wishes.push(config['thinkingBudget'] !== 0);
  if (wishes.length === 0) return undefined;
  return wishes.includes(true) ? 'on' : 'off';
}
