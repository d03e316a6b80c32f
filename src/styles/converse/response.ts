import type { Json, JsonObject } from '../../catalog/model.ts';
import { argumentsOf } from '../calls.ts';
import { Unfinished } from '../codec.ts';
import type { ChatAnswer, FinishReason, Part } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { readUsage } from './usage.ts';

/** Reads an answer of Converse. Throws Error for what is none, and Unfinished if the model went wrong. */
export function readConverseAnswer(body: JsonObject): ChatAnswer {
  const { output, stopReason } = body;
  const message = isObject(output) ? output['message'] : undefined;
  if (!isObject(message) || !Array.isArray(message['content'])) throw new Error('The answer has no message.');
  const parts = message['content'].flatMap(readBlock);
  const has_calls = parts.some(({ type }) => type === 'tool_call');
  const finish = readStop(stopReason, has_calls);
  if ('problem' in finish) throw new Unfinished(finish.problem);
  const usage = readUsage(body['usage']);
  return { parts, finish, ...(usage && { usage }) };
}

function readBlock(block: Json): Part[] {
  if (!isObject(block)) return [];
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (typeof text === 'string') return text === '' ? [] : [{ type: 'text', text }];
  if (isObject(toolUse)) return readToolUse(toolUse);
  if (isObject(reasoningContent)) return readReasoning(reasoningContent);
  const cited = isObject(citationsContent) ? citationsContent['content'] : undefined;
  return Array.isArray(cited) ? cited.flatMap(readBlock) : [];
}

function readToolUse({ toolUseId, name, input }: JsonObject): Part[] {
  if (typeof toolUseId !== 'string' || typeof name !== 'string' || name === '') return [];
  return [{ type: 'tool_call', id: toolUseId, name, arguments: argumentsOf(input) }];
}

function readReasoning({ reasoningText, redactedContent }: JsonObject): Part[] {
  if (typeof redactedContent === 'string') return [{ type: 'redacted_thinking', data: redactedContent }];
  if (!isObject(reasoningText)) return [];
  const { text, signature } = reasoningText;
  const thought = typeof text === 'string' ? text : '';
  const signed = typeof signature === 'string' && signature !== '' ? { signature } : {};
  return thought === '' && !('signature' in signed) ? [] : [{ type: 'thinking', text: thought, ...signed }];
}

const stops: ReadonlyMap<Json, FinishReason> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['stop_sequence', 'stop_sequence'],
  ['guardrail_intervened', 'refusal'],
  ['content_filtered', 'refusal'],
]);

/** The model wrote what Bedrock cannot read. */
const failures: ReadonlySet<Json> = new Set(['malformed_model_output', 'malformed_tool_use']);

/** Reads a `stopReason` together with the content; `problem` if it is no end of a response. */
export function readStop(reason: Json | undefined, has_calls: boolean): { reason: FinishReason } | { problem: string } {
  if (failures.has(reason ?? null)) return { problem: `The model could not finish its answer (${String(reason)}).` };
  return { reason: stops.get(reason ?? null) ?? (has_calls ? 'tool_calls' : 'stop') };
}
