import type { Json, JsonObject } from '../../catalog/model.ts';
import { argumentsOf, inputOf, safeId } from '../calls.ts';
import type { ChatAnswer, FinishReason, Part, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { signatureOf } from '../thought-signatures.ts';
import { append } from '../../lib/append.ts';
import type { SearchResult } from '../../web-search/search.ts';
import { resultBlock, searchBlock, writeCitations } from './searches.ts';
import { usage_format, writeUsage } from './usage.ts';

/**
 * Reads an answer of messages style. Throws Error for what is none. Blocks that only the upstream's own
 * tools make are left out.
 */
export function readMessagesAnswer(value: unknown): ChatAnswer {
  if (!isObject(value)) throw new Error('The answer is no JSON object.');
  if (value['type'] === 'error' || isObject(value['error'])) throw new Error('The answer is an error.');
  const { content, id } = value;
  if (!Array.isArray(content)) throw new Error('The answer has no content.');
  const parts = content.flatMap(readBlock);
  const explanation = explanationOf(value);
  if (explanation !== undefined) parts.push({ type: 'refusal', text: explanation });
  const usage = usage_format.read(value['usage']);
  const { stop_sequence } = value;
  return {
    parts,
    finish: {
      reason: readStop(
        value['stop_reason'],
        parts.some((part) => part.type === 'tool_call'),
      ),
      ...(typeof stop_sequence === 'string' && { stop_sequence }),
    },
    ...(typeof id === 'string' && id !== '' && { id }),
    ...(usage && { usage }),
  };
}

function readBlock(block: Json): Part[] {
  if (!isObject(block)) return [];
  const { type, text, thinking, signature, data } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : [];
    case 'thinking': {
      const thought = typeof thinking === 'string' ? thinking : '';
      const signed = typeof signature === 'string' && signature !== '' ? { signature } : {};
      return thought === '' && !('signature' in signed) ? [] : [{ type: 'thinking', text: thought, ...signed }];
    }
    case 'redacted_thinking':
      return typeof data === 'string' ? [{ type: 'redacted_thinking', data }] : [];
    case 'tool_use':
      return readToolUse(block);
    default:
      return [];
  }
}

function readToolUse({ id, name, input }: JsonObject): Part[] {
  if (typeof id !== 'string' || typeof name !== 'string' || name === '') return [];
  return [{ type: 'tool_call', id, name, arguments: argumentsOf(input) }];
}

function explanationOf(answer: JsonObject): string | undefined {
  const details = answer['stop_details'];
  if (answer['stop_reason'] !== 'refusal' || !isObject(details)) return undefined;
  const { explanation } = details;
  return typeof explanation === 'string' && explanation !== '' ? explanation : undefined;
}

const stops: ReadonlyMap<Json, FinishReason> = new Map([
  ['stop_sequence', 'stop_sequence'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['pause_turn', 'pause'],
  ['refusal', 'refusal'],
]);

/** Reads a `stop_reason` together with the content. */
export function readStop(reason: Json | undefined, has_calls: boolean): FinishReason {
  return stops.get(reason ?? null) ?? (has_calls ? 'tool_calls' : 'stop');
}

/** The id of an answer. */
export function answerId(request_id: string): string {
  return `msg_${request_id}`;
}

/** The body of an answer in messages style; `usage` is never absent there. */
export function writeMessagesAnswer(answer: ChatAnswer, usage: Usage, model: string, request_id: string): JsonObject {
  const has_calls = answer.parts.some((part) => part.type === 'tool_call');
  return {
    ...messageHead(model, request_id),
    content: writeBlocks(withSignatures(answer.parts)),
    ...writeEnd(answer.finish, has_calls),
    usage: writeUsage(usage),
  };
}

/** A message before its content. */
export function messageHead(model: string, request_id: string): JsonObject {
  return {
    id: answerId(request_id),
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    diagnostics: null,
    ...not_ended,
  };
}

const not_ended = { container: null, stop_details: null, stop_reason: null, stop_sequence: null };

/** The members of a message that say why it ended. */
export function writeEnd({ reason, stop_sequence }: ChatAnswer['finish'], has_calls: boolean): JsonObject {
  const refusal = { type: 'refusal', category: null, explanation: null };
  return {
    ...not_ended,
    stop_details: reason === 'refusal' ? refusal : null,
    stop_reason: writeStop(reason, has_calls),
    stop_sequence: stop_sequence ?? null,
  };
}

/** The thought signature of a call stands in the signature of what was thought before it; of nothing, if need be. */
function withSignatures(parts: readonly Part[]): Part[] {
  const signed: Part[] = [];
  for (const part of parts) {
    if (part.type === 'tool_call' && part.thought_signature !== undefined) {
      const signature = signatureOf(safeId(part.id), part.thought_signature);
      const at = signed.findLastIndex((each) => each.type === 'thinking');
      const thought = signed[at];
      if (thought?.type === 'thinking' && thought.signature === undefined) signed[at] = { ...thought, signature };
      else signed.push({ type: 'thinking', text: '', signature });
    }
    signed.push(part);
  }
  return signed;
}

/** Writes the blocks in the order that the style requires: thinking, text, calls of tools. */
function writeBlocks(parts: readonly Part[]): JsonObject[] {
  if (parts.some((part) => part.type === 'web_search')) return writeSearched(parts);
  const rank = (part: Part) =>
    part.type === 'thinking' || part.type === 'redacted_thinking' ? 0 : part.type === 'tool_call' ? 2 : 1;
  return parts.toSorted((a, b) => rank(a) - rank(b)).flatMap(writeBlock);
}

/** In their own order, texts with their sources. */
function writeSearched(parts: readonly Part[]): JsonObject[] {
  const results: SearchResult[] = [];
  return parts.flatMap((part) => {
    if (part.type === 'web_search') {
      append(results, part.results);
      return [searchBlock(part.id, part.query), resultBlock(part)];
    }
    const blocks = writeBlock(part);
    if (part.type !== 'text') return blocks;
    const citations = writeCitations(part.text, results);
    return citations.length === 0 ? blocks : blocks.map((block) => ({ ...block, citations }));
  });
}

function writeBlock(part: Part): JsonObject[] {
  switch (part.type) {
    case 'thinking':
      return [{ type: 'thinking', thinking: part.text, signature: part.signature ?? '' }];
    case 'redacted_thinking':
      return [{ type: 'redacted_thinking', data: part.data }];
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }];
    case 'tool_call':
      return [{ type: 'tool_use', id: safeId(part.id), name: part.name, input: inputOf(part.arguments) }];
    default:
      return [];
  }
}

/** Which stop sequence was met is unknown where the upstream does not tell: `end_turn` then. */
export function writeStop(reason: FinishReason, has_calls: boolean): string {
  switch (reason) {
    case 'length':
      return 'max_tokens';
    case 'refusal':
      return 'refusal';
    case 'pause':
      return 'pause_turn';
    case 'stop_sequence':
      return 'stop_sequence';
    default:
      return has_calls ? 'tool_use' : 'end_turn';
  }
}
