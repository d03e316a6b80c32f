import type { Json, JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import { cacheControl, markLast } from '../cache-control.ts';
import type { Conversation, Part, TextPart, Turn } from '../conversation.ts';
import {
  memberOf,
  mistake,
  needName,
  needObject,
  needText,
  notCarried,
  readList,
  readText,
  wrongType,
} from '../fields.ts';
import { readAudio, readSource } from '../media.ts';
import { customArguments } from '../custom-tools.ts';
import { isReference } from './head.ts';
import { readThought, thoughtSignaturesIn } from './reasoning.ts';
import { readResponsesSettings } from './settings.ts';
import { callerTools, functionName, search_name } from './tools.ts';
import { addTurn, OpenCalls } from '../turns.ts';

/** Reads the body of a responses request. Throws ApiError 400 naming the field that cannot be read. */
export function readResponses(body: JsonObject): Conversation {
  const turns: Turn[] = [];
  const instructions = readText(body, 'instructions', 'instructions') ?? '';
  if (instructions !== '') addTurn(turns, 'system', [{ type: 'text', text: instructions }]);
  const input = memberOf(body, 'input');
  if (typeof input === 'string') addTurn(turns, 'user', [{ type: 'text', text: input }]);
  else readItems(readList(body, 'input', 'input') ?? [], turns);
  return { turns, ...readResponsesSettings(body) };
}

/** Calls and their results are items of their own; calls in a row are one turn of the assistant. */
function readItems(items: readonly Json[], turns: Turn[]): void {
  const calls = new OpenCalls();
  const thought_signatures = thoughtSignaturesIn(items);
  const read = items.map((value, index) => ({ at: `input[${index}]`, item: needObject(value, `input[${index}]`) }));
  for (const { at, item } of resultsFirst(read)) {
    if (isReference(item)) continue; // of reasoning; others are refused before
    readItem(item, at, turns, calls, thought_signatures);
  }
  calls.checkAnswered();
}

type Placed = { at: string; item: JsonObject };

const call_types: readonly (Json | undefined)[] = ['function_call', 'custom_tool_call'];
const result_types: readonly (Json | undefined)[] = ['function_call_output', 'custom_tool_call_output'];

/**
 * Puts messages to the model that stand between a call and its result after the result: this style allows them there
 * (Codex writes them so when a person steers while a tool runs), the others do not.
 */
function resultsFirst(items: readonly Placed[]): Placed[] {
  const results = new Map<Json | undefined, number>();
  for (const [index, { item }] of items.entries())
    if (result_types.includes(item['type'])) results.set(item['call_id'], index);
  const open = new Set<Json | undefined>();
  const ordered: Placed[] = [];
  let later: Placed[] = [];
  for (const [index, placed] of items.entries()) {
    const { type = 'message', role, call_id } = placed.item;
    if (type === 'message' && role !== 'assistant' && open.size > 0) {
      later.push(placed);
      continue;
    }
    ordered.push(placed);
    if (call_types.includes(type) && (results.get(call_id) ?? -1) > index) open.add(call_id);
    if (result_types.includes(type)) open.delete(call_id);
    if (open.size === 0 && later.length > 0) {
      append(ordered, later);
      later = [];
    }
  }
  return [...ordered, ...later];
}

type Signatures = ReadonlyMap<Json | undefined, string>;

function readItem(item: JsonObject, at: string, turns: Turn[], calls: OpenCalls, signatures: Signatures): void {
  const type = memberOf(item, 'type') ?? 'message';
  switch (type) {
    case 'message':
      return readMessage(item, at, turns, calls);
    case 'reasoning':
      return addTurn(turns, 'assistant', readThought(item));
    case 'function_call':
    case 'custom_tool_call':
      return addTurn(turns, 'assistant', [readCall(item, at, calls, signatures)]);
    case 'function_call_output':
    case 'custom_tool_call_output':
      return addTurn(turns, 'user', [readResult(item, at, calls)]);
    case 'tool_search_call':
      return addTurn(turns, 'assistant', readSearch(item, at, calls));
    case 'tool_search_output':
      return addTurn(turns, 'user', readFoundTools(item, at, calls));
    case 'additional_tools':
      return; // among the tools
    default: {
      const parts = hostedItem(item, type);
      if (!parts) throw notCarried(`${at}.type`, 'An item of this type');
      return addTurn(turns, 'assistant', parts);
    }
  }
}

function readMessage(message: JsonObject, at: string, turns: Turn[], calls: OpenCalls): void {
  const role = needText(message, 'role', `${at}.role`);
  switch (role) {
    case 'system':
    case 'developer':
      calls.checkAnswered();
      return addTurn(turns, 'system', markLast(readContent(message, at, 'content').map(textAlone), message));
    case 'user':
      calls.checkAnswered();
      return addTurn(turns, 'user', markLast(readContent(message, at, 'content'), message));
    case 'assistant':
      return addTurn(turns, 'assistant', markLast(readContent(message, at, 'content').map(spoken), message));
    default:
      throw mistake(`${at}.role`, 'must be one of system, developer, user, assistant');
  }
}

/** No other style has a place for files in what a model said. */
function spoken(part: Part): Part {
  if ('at' in part) throw notCarried(part.at, 'A file in a message of the assistant');
  return part;
}

function textAlone(part: Part): TextPart {
  if (part.type === 'text') return part;
  throw mistake('at' in part ? part.at : 'input', 'must be text in a message of this role');
}

function readContent(holder: JsonObject, at: string, field: 'content' | 'output'): Part[] {
  const where = `${at}.${field}`;
  const content = memberOf(holder, field);
  if (content === undefined) throw mistake(where, 'is required');
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  if (!Array.isArray(content)) throw wrongType(where, 'a string or an array of parts', content);
  return content.map((part, index) => readPart(needObject(part, `${where}[${index}]`), `${where}[${index}]`));
}

function readPart(part: JsonObject, at: string): Part {
  switch (part['type']) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: needText(part, 'text', `${at}.text`), ...cacheControl(part) };
    case 'refusal':
      return { type: 'refusal', text: needText(part, 'refusal', `${at}.refusal`) };
    case 'input_image':
      return readImage(part, at);
    case 'input_file':
      return readFile(part, at);
    case 'input_audio':
      return readAudio(part, at);
    default:
      throw notCarried(`${at}.type`, 'A part of this type');
  }
}

function readImage(part: JsonObject, at: string): Part {
  const where = `${at}.image_url`;
  const detail = readText(part, 'detail', `${at}.detail`);
  const source = readSource(needText(part, 'image_url', where), where);
  return { type: 'image', source, at: where, ...(detail !== undefined && { detail }), ...cacheControl(part) };
}

function readFile(part: JsonObject, at: string): Part {
  const title = readText(part, 'filename', `${at}.filename`);
  const extras = { ...(title !== undefined && { title }), ...cacheControl(part) };
  const link = readText(part, 'file_url', `${at}.file_url`);
  const where = `${at}.${link === undefined ? 'file_data' : 'file_url'}`;
  if (link !== undefined && memberOf(part, 'file_data') !== undefined)
    throw mistake(`${at}.file_data`, 'must not be used beside file_url');
  const source = readSource(link ?? needText(part, 'file_data', where), where);
  if (source.type === 'url') return { type: 'document', source, at: where, ...extras };
  if (source.media_type.startsWith('image/')) return { type: 'image', source, at: where, ...cacheControl(part) };
  if (!source.media_type.startsWith('text/')) return { type: 'document', source, at: where, ...extras };
  const text = Buffer.from(source.data, 'base64').toString('utf8');
  return { type: 'document', source: { type: 'text', text }, at: where, ...extras };
}

function readCall(item: JsonObject, at: string, calls: OpenCalls, signatures: Signatures): Part {
  const namespace = readText(item, 'namespace', `${at}.namespace`);
  const name = functionName(needName(item, 'name', `${at}.name`), namespace);
  const is_custom = item['type'] === 'custom_tool_call';
  const field = is_custom ? 'input' : 'arguments';
  const text = readText(item, field, `${at}.${field}`) ?? '';
  return openCall(item, at, calls, { name, text: is_custom ? customArguments(text) : text, field, signatures });
}

type Opened = { name: string; text: string; field: string; signatures?: Signatures };

function openCall(item: JsonObject, at: string, calls: OpenCalls, { name, text, field, signatures }: Opened): Part {
  const id = calls.add(needName(item, 'call_id', `${at}.call_id`), name, `${at}.call_id`);
  calls.checkArguments(text, `${at}.${field}`);
  const thought_signature = signatures?.get(item['call_id']);
  return {
    type: 'tool_call',
    id,
    name,
    arguments: text,
    ...(thought_signature !== undefined && { thought_signature }),
    ...cacheControl(item),
  };
}

/** One that the provider ran says nothing to a model that is given all tools. */
function readSearch(item: JsonObject, at: string, calls: OpenCalls): Part[] {
  if (memberOf(item, 'call_id') === undefined) return [];
  const { arguments: values = null } = item;
  const text = typeof values === 'string' ? values : JSON.stringify(values ?? {});
  return [openCall(item, at, calls, { name: search_name, text, field: 'arguments' })];
}

/** The tools themselves stand among those of the request. */
function readFoundTools(item: JsonObject, at: string, calls: OpenCalls): Part[] {
  if (memberOf(item, 'call_id') === undefined) return [];
  const id = calls.answer(needText(item, 'call_id', `${at}.call_id`), `${at}.call_id`);
  const names = [...callerTools({ tools: item['tools'] ?? [] }).keys()];
  const text = names.length === 0 ? 'No tools were found.' : `Tools now available: ${names.join(', ')}`;
  return [{ type: 'tool_result', id, parts: [{ type: 'text', text }], is_error: false }];
}

/** Calls of tools that a provider ran, which stand beside their results. */
const hosted_items: ReadonlySet<Json> = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_call',
]);

/** Say nothing to another model. */
const passed_over: ReadonlySet<Json> = new Set(['mcp_list_tools', 'mcp_approval_request', 'mcp_approval_response']);

/** A call of a provider's own tool as text, for another model that continues the conversation; undefined for other items. */
function hostedItem(item: JsonObject, type: Json): Part[] | undefined {
  if (passed_over.has(type)) return [];
  if (!hosted_items.has(type) || typeof type !== 'string') return undefined;
  const { id: _, type: __, status: ___, result: bytes, ...members } = item;
  const shown =
    type === 'image_generation_call' && typeof bytes === 'string' ? { ...members, result: '(left out)' } : members;
  return [{ type: 'text', text: `[${type.replaceAll('_', ' ')}] ${JSON.stringify(shown)}` }];
}

function readResult(item: JsonObject, at: string, calls: OpenCalls): Part {
  const id = calls.answer(needText(item, 'call_id', `${at}.call_id`), `${at}.call_id`);
  return { type: 'tool_result', id, parts: readContent(item, at, 'output'), is_error: false, ...cacheControl(item) };
}
