import type { Json, JsonObject } from '../../catalog/model.ts';
import type { AnswerOptions } from '../codec.ts';
import type { ChatAnswer, FinishReason, Part, Usage } from '../conversation.ts';
import { memberOf, isObject } from '../fields.ts';
import { append } from '../../lib/append.ts';
import type { SearchResult } from '../../web-search/search.ts';
import { imageItem } from './images.ts';
import { annotationsOf, searchItem } from './searches.ts';
import { writeThought } from './reasoning.ts';
import { signatureOf, signatureOfThought } from '../thought-signatures.ts';
import { writeToolCall, type CallerTools } from './tools.ts';
import { withCost } from '../usage.ts';
import { toolCallsIn, usage_format } from './usage.ts';

/** Reads a whole answer of an upstream. Throws Error for one that failed, or that is none. */
export function readResponsesAnswer(body: JsonObject, request_id: string): ChatAnswer {
  const { output, status } = body;
  if (!Array.isArray(output)) throw new Error('The answer has no output.');
  if (status === 'failed' || status === 'cancelled') throw new Error(`The answer is ${status}.`);
  const items = output.filter(isObject);
  const usage = withToolCalls(usage_format.read(body['usage']), items);
  const parts = items.flatMap((item, index) => readItem(item, spareId(request_id, index)));
  const reason = readResponsesFinish(body, {
    has_calls: parts.some(({ type }) => type === 'tool_call'),
    has_refusal: parts.some(({ type }) => type === 'refusal'),
  });
  const { id } = body;
  return { ...(typeof id === 'string' && { id }), parts, finish: { reason }, ...(usage && { usage }) };
}

function withToolCalls(usage: Partial<Usage> | undefined, items: readonly JsonObject[]): Partial<Usage> | undefined {
  const counted = toolCallsIn(items);
  return counted ? { ...usage, tool_calls: { ...counted, ...usage?.tool_calls } } : usage;
}

/** Reads the status of a response together with its content. */
export function readResponsesFinish(
  response: JsonObject,
  { has_calls, has_refusal }: { has_calls: boolean; has_refusal: boolean },
): FinishReason {
  const finish = finishOf(response);
  if (finish === 'max_output_tokens' || finish === 'incomplete') return 'length';
  if (has_refusal || finish === 'content_filter') return 'refusal';
  return has_calls ? 'tool_calls' : 'stop';
}

/** Returns the finish reason: the status, or the reason of an incomplete response. */
export function finishOf(response: JsonObject): string {
  const { incomplete_details, status } = response;
  const reason = isObject(incomplete_details) ? incomplete_details['reason'] : undefined;
  if (typeof reason === 'string') return reason;
  return typeof status === 'string' ? status : 'completed';
}

/** Codes for what the caller got wrong; all others are about us or the upstream. */
const mistake_codes = /^(invalid_|image_|unsupported_|empty_image|context_length|string_above|cyber_policy|bio_policy)/;

/** An error in the words of the other styles, where the type tells whose mistake it is. */
export function errorIn(error: Json): JsonObject {
  if (!isObject(error)) return {};
  const { code, type, message } = error;
  const is_mistake = typeof code === 'string' && mistake_codes.test(code);
  const error_type = type === undefined || type === 'error' ? (code ?? 'error') : type;
  return {
    type: is_mistake ? 'invalid_request_error' : error_type,
    ...(typeof code === 'string' && { code }),
    ...(typeof message === 'string' && { message }),
  };
}

/** Reads an item. A call without a name is none: nobody could run it. `spare_id`: of a call that has no id at all. */
export function readItem(item: JsonObject, spare_id: string): Part[] {
  const { type, content, name, arguments: args, input } = item;
  if (type === 'function_call' || type === 'custom_tool_call') {
    if (typeof name !== 'string' || name === '') return [];
    const text = typeof args === 'string' ? args : input;
    const id = callIdOf(item) ?? spare_id;
    return [{ type: 'tool_call', id, name, arguments: typeof text === 'string' ? text : '' }];
  }
  if (type === 'reasoning') return readReasoning(item);
  return listOf(content).flatMap(({ text, refusal }): Part[] => {
    if (typeof text === 'string' && text !== '') return [{ type: 'text', text }];
    return typeof refusal === 'string' && refusal !== '' ? [{ type: 'refusal', text: refusal }] : [];
  });
}

/** The id by which a call and its result find each other. Some servers leave it out, and have that of the item only. */
export function callIdOf({ call_id, id }: JsonObject): string | undefined {
  return [call_id, id].find((each): each is string => typeof each === 'string' && each !== '');
}

/** The id of a call that has none. */
export function spareId(request_id: string, index: number): string {
  return `call_${request_id}_${index}`;
}

function readReasoning({ summary, content, encrypted_content: encrypted }: JsonObject): Part[] {
  const texts = [...listOf(summary), ...listOf(content)].flatMap(({ text }) =>
    typeof text === 'string' ? [text] : [],
  );
  const signed = typeof encrypted === 'string' && encrypted !== '' ? { signature: signatureOfThought(encrypted) } : {};
  const text = texts.join('\n\n');
  return text === '' && !('signature' in signed) ? [] : [{ type: 'thinking', text, ...signed }];
}

export function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The members of a response that repeat its request. */
export type Echo = JsonObject;

/** The id of a response. */
export function answerId(request_id: string): string {
  return `resp_${request_id}`;
}

const echoed: readonly [field: string, usual: Json][] = [
  ['background', false],
  ['instructions', null],
  ['max_output_tokens', null],
  ['max_tool_calls', null],
  ['metadata', {}],
  ['parallel_tool_calls', true],
  ['previous_response_id', null],
  ['prompt_cache_key', null],
  ['reasoning', { effort: null, summary: null }],
  ['safety_identifier', null],
  ['service_tier', 'default'],
  ['temperature', 1],
  ['text', { format: { type: 'text' } }],
  ['tool_choice', 'auto'],
  ['tools', []],
  ['top_p', 1],
  ['truncation', 'disabled'],
  ['user', null],
];

export function echoOf(body: JsonObject): Echo {
  const echo: JsonObject = {};
  for (const [field, usual] of echoed) echo[field] = memberOf(body, field) ?? usual;
  return { ...echo, tools: listOf(echo['tools']).map(echoedTool), store: false };
}

/** A function has all members of the style; it is strict only where the caller says so, as it is for the model. */
function echoedTool(tool: JsonObject): JsonObject {
  return tool['type'] === 'function' ? { parameters: null, strict: false, ...tool } : tool;
}

/** `tools`: the caller's, of which the model knows functions. */
export type ResponseOptions = Pick<AnswerOptions, 'model' | 'request_id' | 'created' | 'cost'> & {
  echo: Echo;
  tools?: CallerTools;
};

/** A response in any state; `output` as far as it has come. */
export function writeResponse(
  options: ResponseOptions,
  state: { status: string; incomplete_reason?: string; output: JsonObject[]; usage?: Usage },
): JsonObject {
  const { status, incomplete_reason, output, usage } = state;
  return {
    id: answerId(options.request_id),
    object: 'response',
    created_at: options.created,
    status,
    error: null,
    incomplete_details: incomplete_reason === undefined ? null : { reason: incomplete_reason },
    model: options.model,
    access_programs: null,
    output,
    ...options.echo,
    usage: usage ? withCost(usage_format.write(usage), usage, options.cost) : null,
  };
}

/** Codes of errors of a response; whatever else goes wrong is the server's. */
const codes: ReadonlyMap<string, string> = new Map([
  ['invalid_request', 'invalid_prompt'],
  ['rate_limit', 'rate_limit_exceeded'],
]);

/** The `error` of a response that failed. */
export function writeError({
  type,
  code,
  message,
}: {
  type: string;
  code?: string | undefined;
  message: string;
}): JsonObject {
  return { code: code ?? codes.get(type) ?? 'server_error', message };
}

/** Writes the end of a response in this style. */
export function writeEnding(
  reason: FinishReason,
  has_refusal: boolean,
): { status: string; incomplete_reason?: string } {
  if (reason === 'length' || reason === 'pause')
    return { status: 'incomplete', incomplete_reason: 'max_output_tokens' };
  if (reason === 'refusal' && !has_refusal) return { status: 'incomplete', incomplete_reason: 'content_filter' };
  return { status: 'completed' };
}

/** A whole answer. */
export function writeResponsesAnswer(
  answer: ChatAnswer,
  usage: Usage | undefined,
  options: ResponseOptions,
): JsonObject {
  const has_refusal = answer.parts.some(({ type }) => type === 'refusal');
  const ending = writeEnding(answer.finish.reason, has_refusal);
  const status = ending.status === 'completed' ? 'completed' : 'incomplete';
  return writeResponse(options, {
    ...ending,
    output: writeItems(answer.parts, options, status),
    ...(usage && { usage }),
  });
}

/** Texts in a row are one message; thoughts and calls are items of their own. */
function writeItems(parts: readonly Part[], { request_id, tools }: ResponseOptions, status: string): JsonObject[] {
  const items: JsonObject[] = [];
  let message: JsonObject[] | undefined;
  const results: SearchResult[] = [];
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') {
      if (!message) items.push(writeMessage(idOf('msg', request_id, items.length), (message = []), status));
      message.push(writeContent(part, results));
      continue;
    }
    message = undefined;
    if (part.type === 'web_search') {
      items.push(searchItem(idOf('ws', request_id, items.length), part));
      append(results, part.results);
    } else if (part.type === 'made_image') {
      items.push(imageItem(idOf('ig', request_id, items.length), part));
    } else if (part.type === 'thinking' || part.type === 'redacted_thinking') {
      items.push(writeThought(part, idOf('rs', request_id, items.length)));
    } else if (part.type === 'tool_call') {
      if (part.thought_signature !== undefined)
        items.push(writeThoughtSignature(part.id, part.thought_signature, idOf('rs', request_id, items.length)));
      const call = { call_id: part.id, name: part.name, arguments: part.arguments || '{}' };
      const item = writeToolCall(call, tools);
      items.push({ id: idOf(callPrefix(item), request_id, items.length), status, ...item });
    }
  }
  return items;
}

const call_prefixes: ReadonlyMap<Json | undefined, 'ctc' | 'tsc'> = new Map([
  ['custom_tool_call', 'ctc'],
  ['tool_search_call', 'tsc'],
]);

/** Begins the id of a call. */
export function callPrefix({ type }: JsonObject): 'fc' | 'ctc' | 'tsc' {
  return call_prefixes.get(type) ?? 'fc';
}

export function idOf(
  prefix: 'msg' | 'rs' | 'fc' | 'ctc' | 'tsc' | 'ws' | 'ig',
  request_id: string,
  index: number,
): string {
  return `${prefix}_${request_id}_${index}`;
}

/** Reasoning without a text, whose signature names the call that it belongs to. */
export function writeThoughtSignature(call_id: string, thought_signature: string, id: string): JsonObject {
  return writeThought({ type: 'thinking', text: '', signature: signatureOf(call_id, thought_signature) }, id);
}

export function writeMessage(id: string, content: JsonObject[], status: string): JsonObject {
  return { id, type: 'message', status, role: 'assistant', content };
}

export function writeContent(
  part: { type: 'text' | 'refusal'; text: string },
  results: readonly SearchResult[] = [],
): JsonObject {
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text };
  return { type: 'output_text', text: part.text, annotations: annotationsOf(part.text, results), logprobs: [] };
}
