import type { Json, JsonObject } from '../../catalog/model.ts';
import type { ChatAnswer, FinishReason, Part, Usage } from '../conversation.ts';
import { customInput } from '../custom-tools.ts';
import { isObject } from '../fields.ts';
import { writeExtraContent } from '../thought-signatures.ts';
import type { AnswerOptions } from '../codec.ts';
import { withCost } from '../usage.ts';
import { citationsIn } from '../citations.ts';
import { readLogprobs } from './logprobs.ts';
import type { ReasoningShown } from './openrouter.ts';
import { plainChoices, textOf } from './plain-choice.ts';
import { annotationsOf } from './searches.ts';
import { usageIn, usage_format } from './usage.ts';

/**
 * Reads an answer of chat-completions style: one answer per choice, in the order of their indexes. Throws
 * Error for what is none. Lenient in everything else: servers of this style differ.
 */
export function readCompletionsAnswers(value: unknown, request_id: string): ChatAnswer[] {
  if (!isObject(value)) throw new Error('The answer is no JSON object.');
  if (isObject(value['error'])) throw new Error('The answer is an error.');
  const { choices } = value;
  const list = plainChoices(Array.isArray(choices) ? choices.filter(isObject) : [], 'message');
  if (list.length === 0) throw new Error('The answer has no choices.');
  const usage = usage_format.read(usageIn(value));
  const id = value['id'];
  return list
    .toSorted((a, b) => Number(a['index'] ?? 0) - Number(b['index'] ?? 0))
    .map((choice, index) => {
      const parts = readMessage(choice, `${request_id}_${index}`);
      return {
        parts,
        finish: { reason: readFinish(choice['finish_reason'], contentOf(parts)) },
        id: typeof id === 'string' && id !== '' ? id : undefined,
        usage,
        logprobs: readLogprobs(choice['logprobs']),
      };
    });
}

function readMessage(choice: JsonObject, call_prefix: string): Part[] {
  const { message } = choice;
  if (!isObject(message)) throw new Error('A choice has no message.');
  const parts: Part[] = readThinking(message);
  const text = textOf(message['content']) || transcriptOf(message['audio']);
  if (text !== '') parts.push({ type: 'text', text });
  if (typeof message['refusal'] === 'string' && message['refusal'] !== '') {
    parts.push({ type: 'refusal', text: message['refusal'] });
  }
  const calls = Array.isArray(message['tool_calls']) ? message['tool_calls'] : [];
  for (const [index, call] of calls.entries()) {
    const part = readCall(call, `call_${call_prefix}_${index}`);
    if (part) parts.push(part);
  }
  const legacy = calls.length === 0 ? readFunction(message['function_call'], `call_${call_prefix}`) : undefined;
  if (legacy) parts.push(legacy);
  return parts;
}

function transcriptOf(audio: Json | undefined): string {
  return isObject(audio) && typeof audio['transcript'] === 'string' ? audio['transcript'] : '';
}

/**
 * Thinking in a message: `reasoning_details`, which carry signatures, or one of two plain fields. The same
 * in answers and in what callers send back.
 */
export function readThinking(message: JsonObject): Part[] {
  const details = Array.isArray(message['reasoning_details']) ? message['reasoning_details'].filter(isObject) : [];
  const parts = details.flatMap((detail): Part[] => {
    const { type, text, summary, signature, data } = detail;
    if (type === 'reasoning.encrypted' && typeof data === 'string') return [{ type: 'redacted_thinking', data }];
    const thought = typeof text === 'string' ? text : typeof summary === 'string' ? summary : '';
    const signed = typeof signature === 'string' && signature !== '' ? { signature } : {};
    return thought === '' && !('signature' in signed) ? [] : [{ type: 'thinking', text: thought, ...signed }];
  });
  if (parts.length > 0) return parts;
  for (const field of ['reasoning_content', 'reasoning']) {
    const text = message[field];
    if (typeof text === 'string' && text !== '') return [{ type: 'thinking', text }];
  }
  return [];
}

/** Weak servers leave out the id of a call, or send its arguments as an object. */
function readCall(call: Json, spare_id: string): Part | undefined {
  if (!isObject(call)) return undefined;
  const part = readFunction(call['function'] ?? call['custom'], spare_id);
  return part && typeof call['id'] === 'string' && call['id'] !== '' ? { ...part, id: call['id'] } : part;
}

function readFunction(value: Json | undefined, id: string): Extract<Part, { type: 'tool_call' }> | undefined {
  if (!isObject(value) || typeof value['name'] !== 'string' || value['name'] === '') return undefined;
  const raw_arguments = value['arguments'] ?? value['input'] ?? '';
  const text = typeof raw_arguments === 'string' ? raw_arguments : JSON.stringify(raw_arguments);
  return { type: 'tool_call', id, name: value['name'], arguments: text };
}

/**
 * Reads a `finish_reason` together with the content; some servers report `stop` after calls of tools, and the
 * other way round.
 */
export function readFinish(
  reason: Json | undefined,
  { has_calls, has_refusal }: { has_calls: boolean; has_refusal: boolean },
): FinishReason {
  if (reason === 'length') return 'length';
  if (has_refusal || reason === 'content_filter') return 'refusal';
  return has_calls ? 'tool_calls' : 'stop';
}

function contentOf(parts: readonly Part[]): { has_calls: boolean; has_refusal: boolean } {
  return {
    has_calls: parts.some((part) => part.type === 'tool_call'),
    has_refusal: parts.some((part) => part.type === 'refusal'),
  };
}

/** The id of an answer. */
export function answerId(request_id: string): string {
  return `chatcmpl-${request_id}`;
}

export type CompletionsOptions = {
  /** The public id of the model. */
  model: string;
  request_id: string;
  /** Seconds since 1970. */
  created: number;
  /** The caller asked by `functions`, which tools have replaced: it reads `function_call`. */
  legacy_functions: boolean;
  /** Names of the caller's tools that take a free text, of which the model knows functions. */
  custom_tools?: ReadonlySet<string>;
  reasoning?: ReasoningShown;
  cost?: AnswerOptions['cost'];
};

/** The body of an answer in chat-completions style. */
function writeCompletionsAnswer(answer: ChatAnswer, usage: Usage | undefined, options: CompletionsOptions): JsonObject {
  return {
    id: answerId(options.request_id),
    object: 'chat.completion',
    created: options.created,
    model: options.model,
    system_fingerprint: null, // OpenRouter's SDK refuses an answer without it
    choices: [
      {
        index: 0,
        message: writeMessage(answer.parts, options),
        logprobs: null,
        finish_reason: writeFinish(
          answer.finish.reason,
          answer.parts.some((part) => part.type === 'tool_call'),
          options.legacy_functions,
        ),
      },
    ],
    ...(usage && { usage: withCost(usage_format.write(usage), usage, options.cost) }),
  };
}

function writeMessage(
  parts: readonly Part[],
  { legacy_functions, custom_tools, reasoning }: CompletionsOptions,
): JsonObject {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const refusal = parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('');
  const calls = parts.filter((part) => part.type === 'tool_call');
  const [call] = calls;
  const signed = parts.findLast((part) => part.type === 'text' && part.thought_signature !== undefined);
  return {
    role: 'assistant',
    content: text === '' && (call !== undefined || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    ...writeAnnotations(parts, text),
    ...writeThinking(parts, reasoning),
    ...(call && legacy_functions && { function_call: { name: call.name, arguments: call.arguments || '{}' } }),
    ...(call && !legacy_functions && { tool_calls: calls.map((each) => writeSignedCall(each, custom_tools)) }),
    ...(signed?.type === 'text' && writeExtraContent(signed.thought_signature)),
  };
}

function writeAnnotations(parts: readonly Part[], text: string): JsonObject {
  const searches = parts.filter((part) => part.type === 'web_search');
  if (searches.length === 0) return {};
  return {
    annotations: annotationsOf(
      citationsIn(
        text,
        searches.flatMap(({ results }) => results),
      ),
    ),
  };
}

function writeSignedCall(call: Extract<Part, { type: 'tool_call' }>, custom_tools?: ReadonlySet<string>): JsonObject {
  const { id, name, arguments: text } = call;
  const written = custom_tools?.has(name)
    ? { id, type: 'custom', custom: { name, input: customInput(text) } }
    : writeCall(call);
  return { ...written, ...writeExtraContent(call.thought_signature) };
}

/** A call of a tool as it stands in messages of this style. */
export function writeCall(call: Extract<Part, { type: 'tool_call' }>): JsonObject {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments || '{}' } };
}

/**
 * The plain text that most tools show, and beside it the blocks with their signatures, which a caller that
 * sends them back gets thinking models to go on with.
 */
function writeThinking(parts: readonly Part[], shown?: ReasoningShown): JsonObject {
  if (shown === 'hidden') return {};
  const details = parts.flatMap((part, index): JsonObject[] => {
    const format = 'anthropic-claude-v1';
    if (part.type === 'redacted_thinking') return [{ type: 'reasoning.encrypted', data: part.data, format, index }];
    if (part.type !== 'thinking' || part.signature === undefined) return [];
    return [{ type: 'reasoning.text', text: part.text, signature: part.signature, format, index }];
  });
  const text = parts.map((part) => (part.type === 'thinking' ? part.text : '')).join('');
  return {
    ...(text !== '' && thoughtMembers(text, shown)),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

/** A text that was thought, in the fields in which callers look for it. */
export function thoughtMembers(text: string, shown?: ReasoningShown): JsonObject {
  return { reasoning_content: text, ...(shown === 'plain' && { reasoning: text }) };
}

/** `finish_reason`, in the words of this style. */
export function writeFinish(reason: FinishReason, has_calls: boolean, legacy_functions: boolean): string {
  switch (reason) {
    case 'length':
      return 'length';
    case 'refusal':
      return 'content_filter';
    default:
      if (!has_calls) return 'stop';
      return legacy_functions ? 'function_call' : 'tool_calls';
  }
}

/** Returns the finish reason of the first choice. */
export function finishOf({ choices }: JsonObject): unknown {
  const choice = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) ? choice['finish_reason'] : undefined;
}

/** The body of several answers to one request, a choice each. */
export function writeCompletionsAnswers(
  answers: readonly ChatAnswer[],
  usage: Usage | undefined,
  options: CompletionsOptions,
): JsonObject {
  const [first = {}, ...others] = answers.map((answer) => writeCompletionsAnswer(answer, usage, options));
  if (others.length === 0) return first;
  const choices = [first, ...others].flatMap((body) => (Array.isArray(body['choices']) ? body['choices'] : []));
  return { ...first, choices: choices.filter(isObject).map((choice, index) => ({ ...choice, index })) };
}

/** The names of tools that take a free text; undefined if there are none. */
export function customTools({ tools }: JsonObject): ReadonlySet<string> | undefined {
  if (!Array.isArray(tools)) return undefined;
  const names = tools.flatMap((tool) => {
    const custom = isObject(tool) && tool['type'] === 'custom' ? tool['custom'] : undefined;
    return isObject(custom) && typeof custom['name'] === 'string' ? [custom['name']] : [];
  });
  return names.length === 0 ? undefined : new Set(names);
}

/** The caller speaks of `functions`, as all did before there were tools. */
export function isLegacy({ functions, tools }: JsonObject): boolean {
  return Array.isArray(functions) && !(Array.isArray(tools) && tools.length > 0);
}
