import type { Json, JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import { cacheControl, markLast } from '../cache-control.ts';
import type { ChatRequest } from '../codec.ts';
import { checkMessages, thinkingBudget } from '../request.ts';
import { readModelOrFirst } from '../fallbacks.ts';
import { wantsCost } from './openrouter.ts';
import { readThinking } from './response.ts';
import { readCompletionsSettings } from './settings.ts';
import type { Conversation, Part, TextPart, Turn } from '../conversation.ts';
import { customArguments } from '../custom-tools.ts';
import {
  memberOf,
  isObject,
  mistake,
  needName,
  needObject,
  needText,
  notCarried,
  readBoolean,
  readCount,
  readList,
  readObject,
  readText,
  wrongType,
} from '../fields.ts';
import { readAudio, readSource } from '../media.ts';
import { readExtraContent } from '../thought-signatures.ts';
import { addTurn, OpenCalls } from '../turns.ts';

export const choices_max = 128;

/** Reads what routing and money need. Throws ApiError 400 naming the field. */
export function readHead(body: JsonObject): Omit<ChatRequest, 'style' | 'body'> {
  const model = readModelOrFirst(body);
  checkMessages(body);
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  const n = readCount(body, 'n', 'n', 1) ?? 1;
  if (n > choices_max) throw mistake('n', `must be at most ${choices_max}`);
  const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 1);
  const max_completion_tokens = readCount(body, 'max_completion_tokens', 'max_completion_tokens', 1);
  const wants_cost = wantsCost(body);
  const wants_usage = readWantsUsage(body, stream) || wants_cost;
  const thinking_budget = thinkingBudget(body);
  return {
    model,
    stream,
    wants_usage,
    ...(wants_cost && { wants_cost }),
    max_tokens: max_completion_tokens ?? max_tokens,
    thinking_budget,
    n,
  };
}

/** Tells whether usage is wanted in a stream. Throws ApiError 400. */
export function readWantsUsage(body: JsonObject, stream: boolean): boolean {
  const options = readObject(body, 'stream_options', 'stream_options');
  if (options === undefined) return false;
  if (!stream) throw mistake('stream_options', 'is only allowed with "stream": true');
  return readBoolean(options, 'include_usage', 'stream_options.include_usage') ?? false;
}

/** Reads the body of a chat-completions request. Throws ApiError 400 naming the field that cannot be read. */
export function readCompletions(body: JsonObject): Conversation {
  return readCompletionsSettings(body, readTurns(body));
}

function readTurns(body: JsonObject): Turn[] {
  const turns: Turn[] = [];
  const calls = new OpenCalls();
  for (const [index, value] of (readList(body, 'messages', 'messages') ?? []).entries()) {
    const at = `messages[${index}]`;
    const message = needObject(value, at);
    const role = needText(message, 'role', `${at}.role`);
    if (role !== 'tool' && role !== 'function') calls.checkAnswered();
    switch (role) {
      case 'system':
      case 'developer':
        addTurn(turns, 'system', markLast(readTexts(message, at), message));
        break;
      case 'user':
        addTurn(turns, 'user', markLast(readUserContent(message, at), message));
        break;
      case 'assistant':
        addTurn(turns, 'assistant', markLast(readAssistant(message, at, calls), message));
        break;
      case 'tool': {
        const id = calls.answer(needText(message, 'tool_call_id', `${at}.tool_call_id`), `${at}.tool_call_id`);
        addTurn(turns, 'user', [readResult(message, id, at)]);
        break;
      }
      case 'function': {
        const id = calls.answerByName(needText(message, 'name', `${at}.name`), `${at}.name`);
        addTurn(turns, 'user', [readResult(message, id, at)]);
        break;
      }
      default:
        throw mistake(`${at}.role`, 'must be one of system, developer, user, assistant, tool, function');
    }
  }
  calls.checkAnswered();
  return turns;
}

/** Text alone: what system and developer messages are made of. */
function readTexts(message: JsonObject, at: string): TextPart[] {
  return contentParts(message, at).map(([part, where]) => {
    if (part['type'] === 'text') return readTextPart(part, where);
    throw mistake(`${where}.type`, 'must be "text" in a message of this role');
  });
}

function readUserContent(message: JsonObject, at: string): Part[] {
  if (memberOf(message, 'content') === undefined) throw mistake(`${at}.content`, 'is required');
  return contentParts(message, at).map(([part, where]) => readPart(part, where));
}

/** The parts of a message's content with their places; a string is one part of text, null none. */
function contentParts(message: JsonObject, at: string): [part: JsonObject, at: string][] {
  const content = memberOf(message, 'content');
  if (content === undefined) return [];
  if (typeof content === 'string') return [[{ type: 'text', text: content }, `${at}.content`]];
  if (!Array.isArray(content)) throw wrongType(`${at}.content`, 'a string or an array of parts', content);
  return content.map((part, index) => {
    const where = `${at}.content[${index}]`;
    return [needObject(part, where), where];
  });
}

function readPart(part: JsonObject, at: string): Part {
  switch (part['type']) {
    case 'text':
      return readTextPart(part, at);
    case 'image_url':
      return readImage(part, at);
    case 'file':
      return readFile(part, at);
    case 'input_audio':
      return readAudio(part, at);
    default:
      throw mistake(`${at}.type`, 'must be one of text, image_url, input_audio, file');
  }
}

function readTextPart(part: JsonObject, at: string): TextPart {
  return { type: 'text', text: needText(part, 'text', `${at}.text`), ...cacheControl(part) };
}

/** Some servers and their tools have the URL itself in place of the object. */
function readImage(part: JsonObject, at: string): Part {
  const where = `${at}.image_url`;
  const { image_url } = part;
  if (typeof image_url === 'string') {
    return { type: 'image', source: readSource(image_url, where), at: where, ...cacheControl(part) };
  }
  const image = needObject(image_url, where);
  const detail = readText(image, 'detail', `${where}.detail`);
  return {
    type: 'image',
    source: readSource(needText(image, 'url', `${where}.url`), `${where}.url`),
    at: `${where}.url`,
    ...(detail !== undefined && { detail }),
    ...cacheControl(part),
  };
}

function readFile(part: JsonObject, at: string): Part {
  const file = needObject(part['file'], `${at}.file`);
  if (memberOf(file, 'file_id') !== undefined)
    throw notCarried(`${at}.file.file_id`, 'A file that was uploaded elsewhere');
  const where = `${at}.file.file_data`;
  const url = needText(file, 'file_data', where);
  const source = readSource(url, where);
  const title = readText(file, 'filename', `${at}.file.filename`);
  const extras = { ...(title !== undefined && { title }), ...cacheControl(part), at: where };
  if (source.type === 'url') return { type: 'document', source, ...extras };
  if (source.media_type.startsWith('image/')) return { type: 'image', source, at: where, ...cacheControl(part) };
  if (!source.media_type.startsWith('text/')) return { type: 'document', source, ...extras };
  const text = Buffer.from(source.data, 'base64').toString('utf8');
  return { type: 'document', source: { type: 'text', text }, ...extras };
}

function readAssistant(message: JsonObject, at: string, calls: OpenCalls): Part[] {
  const parts: Part[] = readThinking(message);
  for (const [part, where] of contentParts(message, at)) {
    if (part['type'] === 'text') parts.push(readTextPart(part, where));
    else if (part['type'] === 'refusal') {
      parts.push({ type: 'refusal', text: needText(part, 'refusal', `${where}.refusal`) });
    } else throw mistake(`${where}.type`, 'must be "text" or "refusal" in an assistant message');
  }
  const refusal = readText(message, 'refusal', `${at}.refusal`);
  if (refusal !== undefined && refusal !== '') parts.push({ type: 'refusal', text: refusal });
  const last_text = parts.findLast((part) => part.type === 'text');
  if (last_text) Object.assign(last_text, readExtraContent(message));
  if (isObject(message['audio']) && parts.length === 0) {
    throw notCarried(`${at}.audio`, 'An answer that was spoken');
  }
  append(parts, readCalls(message, at, calls));
  return parts;
}

function readCalls(message: JsonObject, at: string, calls: OpenCalls): Part[] {
  const list = readList(message, 'tool_calls', `${at}.tool_calls`) ?? [];
  const parts = list.map((value, index) => {
    const where = `${at}.tool_calls[${index}]`;
    const call = needObject(value, where);
    const called = readCall(call, where);
    calls.checkArguments(called.arguments, `${where}.${'custom' in call ? 'custom.input' : 'function.arguments'}`);
    const id = calls.add(needName(call, 'id', `${where}.id`), called.name, `${where}.id`);
    return { ...called, id, ...readExtraContent(call), ...cacheControl(call) };
  });
  if (memberOf(message, 'function_call') === undefined) return parts;
  const where = `${at}.function_call`;
  const called = readFunction(message['function_call'], where);
  if (parts.some(({ name, arguments: text }) => name === called.name && text === called.arguments)) return parts;
  if (parts.length > 0) throw mistake(where, 'must not be used beside tool_calls');
  calls.checkArguments(called.arguments, `${where}.arguments`);
  return [{ ...called, id: calls.add('call_function', called.name, where) }];
}

function readCall(call: JsonObject, at: string): Extract<Part, { type: 'tool_call' }> {
  const type = memberOf(call, 'type') ?? 'function';
  if (type === 'function') return readFunction(call['function'], `${at}.function`);
  if (type !== 'custom') throw notCarried(`${at}.type`, 'A call of this type');
  const custom = needObject(call['custom'], `${at}.custom`);
  const name = needName(custom, 'name', `${at}.custom.name`);
  const input = readText(custom, 'input', `${at}.custom.input`) ?? '';
  return { type: 'tool_call', id: '', name, arguments: customArguments(input) };
}

function readFunction(value: Json | undefined, at: string): Extract<Part, { type: 'tool_call' }> {
  const called = needObject(value, at);
  const name = needName(called, 'name', `${at}.name`);
  const text = readText(called, 'arguments', `${at}.arguments`) ?? '';
  return { type: 'tool_call', id: '', name, arguments: text };
}

/** Text by the official service; others take images there too. */
function readResult(message: JsonObject, id: string, at: string): Part {
  const parts = contentParts(message, at).map(([part, where]) => readPart(part, where));
  return { type: 'tool_result', id, parts, is_error: false, ...cacheControl(message) };
}
