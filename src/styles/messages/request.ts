import type { Json, JsonObject } from '../../catalog/model.ts';
import { cacheControl } from '../cache-control.ts';
import { argumentsOf } from '../calls.ts';
import type { ChatRequest, Purpose } from '../codec.ts';
import { readModelOrFirst } from '../fallbacks.ts';
import { checkMessages, thinkingBudget } from '../request.ts';
import type { Conversation, Part, Source, TextPart, Turn } from '../conversation.ts';
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
  readText,
  wrongType,
} from '../fields.ts';
import type { BodyLink, FetchedFile, Replacement } from '../links.ts';
import { readMessagesSettings } from './settings.ts';
import { isOfCall, readSignature } from '../thought-signatures.ts';
import { serverBlock } from './server-blocks.ts';
import { addTurn, OpenCalls } from '../turns.ts';

/** Reads what routing and money need. Throws ApiError 400 naming the field. */
export function readHead(body: JsonObject, purpose: Purpose): Omit<ChatRequest, 'style' | 'body'> {
  const model = readModelOrFirst(body);
  checkMessages(body);
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 0);
  if (max_tokens === undefined && purpose === 'answer') throw mistake('max_tokens', 'is required');
  return { model, stream, wants_usage: true, max_tokens, thinking_budget: thinkingBudget(body), n: 1 };
}

/** Reads the body of a messages request. Throws ApiError 400 naming the field that cannot be read. */
export function readMessages(body: JsonObject): Conversation {
  const system = withoutTelemetry(readTexts(body['system'] ?? null, 'system'));
  const turns: Turn[] = system.length === 0 ? [] : [{ role: 'system', parts: system }];
  addTurns(turns, body);
  return readMessagesSettings(body, turns);
}

function addTurns(turns: Turn[], body: JsonObject): void {
  const calls = new OpenCalls();
  for (const [index, value] of (readList(body, 'messages', 'messages') ?? []).entries()) {
    const at = `messages[${index}]`;
    const message = needObject(value, at);
    const role = needText(message, 'role', `${at}.role`);
    if (role !== 'user') calls.checkAnswered();
    switch (role) {
      case 'system':
        addTurn(turns, 'system', readTexts(message['content'] ?? null, `${at}.content`));
        break;
      case 'user':
        addTurn(turns, 'user', readUser(message, at, calls));
        break;
      case 'assistant':
        addTurn(turns, 'assistant', readAssistant(message, at, calls));
        break;
      default:
        throw mistake(`${at}.role`, 'must be one of user, assistant, system');
    }
  }
  calls.checkAnswered();
}

function readTexts(content: Json, at: string): TextPart[] {
  return blocksOf(content, at).map(([block, where]) => {
    if (block['type'] === 'text') return readTextBlock(block, where);
    throw notCarried(`${where}.type`, 'A block of this type in a system turn');
  });
}

/** The blocks of a content with their places; a string is one block of text, null none. */
function blocksOf(content: Json, at: string): [block: JsonObject, at: string][] {
  if (content === null) return [];
  if (typeof content === 'string') return [[{ type: 'text', text: content }, at]];
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array of blocks', content);
  return content.map((block, index) => [needObject(block, `${at}[${index}]`), `${at}[${index}]`]);
}

function readTextBlock(block: JsonObject, at: string): TextPart {
  return { type: 'text', text: needText(block, 'text', `${at}.text`), ...cacheControl(block) };
}

function readUser(message: JsonObject, at: string, calls: OpenCalls): Part[] {
  const content = memberOf(message, 'content');
  if (content === undefined) throw mistake(`${at}.content`, 'is required');
  return blocksOf(content, `${at}.content`).flatMap(([block, where]) =>
    block['type'] === 'tool_result' ? [readResult(block, where, calls)] : readBlock(block, where),
  );
}

function readResult(block: JsonObject, at: string, calls: OpenCalls): Part {
  const id = calls.answer(needText(block, 'tool_use_id', `${at}.tool_use_id`), `${at}.tool_use_id`);
  const parts = blocksOf(block['content'] ?? null, `${at}.content`).flatMap(([each, where]) => readBlock(each, where));
  const is_error = readBoolean(block, 'is_error', `${at}.is_error`) ?? false;
  return { type: 'tool_result', id, parts, is_error, ...cacheControl(block) };
}

/** Reads a block of the caller or of a tool. */
function readBlock(block: JsonObject, at: string): Part[] {
  switch (block['type']) {
    case 'text':
      return [readTextBlock(block, at)];
    case 'image':
      return [{ type: 'image', source: readSource(block, at), at: `${at}.source`, ...cacheControl(block) }];
    case 'document':
      return readDocument(block, at);
    case 'search_result':
      return [readSearchResult(block, at)];
    case 'tool_reference': {
      const name = needText(block, 'tool_name', `${at}.tool_name`);
      return [{ type: 'text', text: `Tool now available: ${name}` }];
    }
    default: {
      const parts = serverBlock(block);
      if (parts) return parts;
      throw notCarried(`${at}.type`, 'A block of this type');
    }
  }
}

function readSource(block: JsonObject, at: string): Source {
  const source = needObject(block['source'], `${at}.source`);
  switch (source['type']) {
    case 'base64': {
      const media_type = needName(source, 'media_type', `${at}.source.media_type`).toLowerCase();
      return { type: 'base64', media_type, data: needText(source, 'data', `${at}.source.data`) };
    }
    case 'url':
      return { type: 'url', url: needName(source, 'url', `${at}.source.url`) };
    case 'file':
      throw notCarried(`${at}.source`, 'A file that was uploaded elsewhere');
    default:
      throw notCarried(`${at}.source.type`, 'A source of this type');
  }
}

function readDocument(block: JsonObject, at: string): Part[] {
  const source = needObject(block['source'], `${at}.source`);
  const title = readText(block, 'title', `${at}.title`);
  const context = readText(block, 'context', `${at}.context`);
  const extras = { ...(title !== undefined && { title }), ...cacheControl(block), at: `${at}.source` };
  const before: Part[] = context === undefined || context === '' ? [] : [{ type: 'text', text: context }];
  switch (source['type']) {
    case 'text': {
      const text = needText(source, 'data', `${at}.source.data`);
      return [...before, { type: 'document', source: { type: 'text', text }, ...extras }];
    }
    case 'content': {
      const parts = blocksOf(source['content'] ?? null, `${at}.source.content`).flatMap(([each, where]) =>
        readBlock(each, where),
      );
      const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
      const rest = parts.filter((part) => part.type !== 'text');
      return [...before, { type: 'document', source: { type: 'text', text }, ...extras }, ...rest];
    }
    default:
      return [...before, { type: 'document', source: readSource(block, at), ...extras }];
  }
}

function readSearchResult(block: JsonObject, at: string): TextPart {
  const title = readText(block, 'title', `${at}.title`) ?? '';
  const source = readText(block, 'source', `${at}.source`) ?? '';
  const texts = blocksOf(block['content'] ?? null, `${at}.content`).map(([each, where]) => readTextBlock(each, where));
  return { type: 'text', text: `${title} (${source}):\n${texts.map(({ text }) => text).join('\n')}` };
}

function readAssistant(message: JsonObject, at: string, calls: OpenCalls): Part[] {
  const blocks = blocksOf(message['content'] ?? null, `${at}.content`);
  const thought_signatures = thoughtSignaturesIn(blocks.map(([block]) => block));
  return blocks.flatMap(([block, where]): Part[] => {
    switch (block['type']) {
      case 'text':
        return [readTextBlock(block, where)];
      case 'thinking':
        return [readThinkingBlock(block, where)];
      case 'redacted_thinking':
        return [{ type: 'redacted_thinking', data: needText(block, 'data', `${where}.data`) }];
      case 'tool_use':
        return [readToolUse(block, where, calls, thought_signatures)];
      default: {
        const block_parts = serverBlock(block);
        if (block_parts) return block_parts;
        throw notCarried(`${where}.type`, 'A block of this type in an assistant turn');
      }
    }
  });
}

/** Thought signatures of calls by the ids that the caller knows. */
function thoughtSignaturesIn(blocks: readonly JsonObject[]): ReadonlyMap<Json | undefined, string> {
  const signatures = blocks.flatMap(
    (block) => (block['type'] === 'thinking' && readSignature(block['signature'])) || [],
  );
  return new Map(signatures.map(({ call_id, thought_signature }) => [call_id, thought_signature]));
}

function readThinkingBlock(block: JsonObject, at: string): Part {
  const text = readText(block, 'thinking', `${at}.thinking`) ?? '';
  const signature = readText(block, 'signature', `${at}.signature`) ?? '';
  const is_own = signature !== '' && !isOfCall(signature);
  return { type: 'thinking', text, ...(is_own && { signature }) };
}

function readToolUse(
  block: JsonObject,
  at: string,
  calls: OpenCalls,
  thought_signatures: ReadonlyMap<Json | undefined, string>,
): Part {
  const name = needName(block, 'name', `${at}.name`);
  const { input } = block;
  if (input !== undefined && input !== null && !isObject(input)) throw wrongType(`${at}.input`, 'an object', input);
  const id = calls.add(needName(block, 'id', `${at}.id`), name, `${at}.id`);
  const thought_signature = thought_signatures.get(block['id']);
  return {
    type: 'tool_call',
    id,
    name,
    arguments: argumentsOf(input),
    ...(thought_signature !== undefined && { thought_signature }),
    ...cacheControl(block),
  };
}

/** The first line that some tools send: it says nothing to a model, and would spoil the cache of everything after it. */
const telemetry = /^x-anthropic-billing-header:[^\n]*\n*/;

/** The system prompt without that line, and without its block if nothing else stands there. */
function withoutTelemetry(system: TextPart[]): TextPart[] {
  const [first, ...rest] = system;
  if (!first || !telemetry.test(first.text)) return system;
  const text = first.text.replace(telemetry, '');
  return text === '' ? rest : [{ ...first, text }, ...rest];
}

/** A source is replaced whole: it says what it is. */
export function replaceLink({ place }: BodyLink, { mimeType, data }: FetchedFile): Replacement | undefined {
  if (place.at(-2) !== 'source') return undefined;
  const source = mimeType.startsWith('text/')
    ? { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString('utf8') }
    : { type: 'base64', media_type: mimeType, data };
  return { place: place.slice(0, -1), put: () => source };
}
