import type { Json, JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import { inputOf, safeId, shortId, type ToolNames } from '../calls.ts';
import type { Part, Source, TextPart, Turn } from '../conversation.ts';
import { isObject, mistake, notCarried } from '../fields.ts';
import { isForeign } from '../thought-signatures.ts';
import { opening } from '../turns.ts';

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

type Message = { role: 'user' | 'assistant'; content: JsonObject[] };

/** Longest id of a call, and longest name of a document. */
const id_length_max = 64;
const name_length_max = 200;

const image_formats: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
]);

const document_formats: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['text/markdown', 'md'],
]);

/** Writes the turns of a conversation for Converse. */
export class TurnsWriter {
  readonly #names: ToolNames;
  /** Thinking goes back only to models that sign it. */
  readonly #takes_thinking: boolean;
  /** Names of tools that the history calls. */
  readonly called = new Set<string>();
  #documents = 0;

  constructor(names: ToolNames, takes_thinking: boolean) {
    this.#names = names;
    this.#takes_thinking = takes_thinking;
  }

  /** Throws ApiError 400 naming the part that has no place there, or if nothing is said. */
  write(turns: readonly Turn[]): Message[] {
    const messages: Message[] = [];
    for (const { role, parts } of turns) {
      const content: JsonObject[] = [];
      for (const part of parts) append(content, this.#part(part));
      if (content.length === 0) continue;
      const to = role === 'assistant' ? 'assistant' : 'user';
      const last = messages.at(-1);
      if (last?.role === to) append(last.content, content);
      else messages.push({ role: to, content });
    }
    if (messages.length === 0) throw mistake('messages', 'must hold some text');
    // A greeting of the assistant's may begin a chat there; here a user's turn must.
    if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: [{ text: opening }] });
    for (const message of messages) besideDocuments(message);
    trimLast(messages);
    return messages;
  }

  #part(part: Part): JsonObject[] {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return part.text.trim() === '' ? [] : marked({ text: part.text }, part);
      case 'image':
        return marked({ image: imageOf(part.source, part.at) }, part);
      case 'document':
        return marked({ document: this.#document(part) }, part);
      case 'audio':
        throw notCarried(part.at, 'Audio');
      case 'tool_call':
        return marked({ toolUse: this.#call(part) }, part);
      case 'tool_result':
        return marked({ toolResult: this.#result(part) }, part);
      case 'thinking':
        return this.#thinking(part);
      case 'redacted_thinking':
        return this.#takes_thinking ? [{ reasoningContent: { redactedContent: part.data } }] : [];
      case 'web_search':
      case 'made_image':
        return [];
    }
  }

  #thinking({ text, signature }: PartOf<'thinking'>): JsonObject[] {
    // Without a signature it is not of this upstream's making, which would refuse it.
    if (!this.#takes_thinking || signature === undefined || isForeign(signature)) return [];
    return [{ reasoningContent: { reasoningText: { text, signature } } }];
  }

  #call({ id, name, arguments: text }: PartOf<'tool_call'>): JsonObject {
    const own_name = this.#names.forUpstream(name);
    this.called.add(own_name);
    return { toolUseId: idOf(id), name: own_name, input: inputOf(text) };
  }

  #result({ id, parts, is_error }: PartOf<'tool_result'>): JsonObject {
    const content = parts.flatMap((part) => this.#part(part)).filter((block) => block['cachePoint'] === undefined);
    return {
      toolUseId: idOf(id),
      content: content.length > 0 ? content : [{ text: '(no output)' }],
      ...(is_error && { status: 'error' }),
    };
  }

  #document({ source, title, at }: PartOf<'document'>): JsonObject {
    this.#documents += 1;
    const name = documentName(title) ?? `document ${this.#documents}`;
    if (source.type === 'text') {
      return { format: 'txt', name, source: { bytes: Buffer.from(source.text).toString('base64') } };
    }
    const { media_type, data } = inlineOf(source, at);
    const format = document_formats.get(media_type.toLowerCase());
    if (format === undefined) throw notCarried(at, 'A file of this type');
    return { format, name, source: { bytes: data } };
  }
}

function idOf(id: string): string {
  return shortId(safeId(id), id_length_max);
}

/** Letters, digits, single spaces, hyphens and brackets: others are no names there, and could be read as orders. */
function documentName(title: string | undefined): string | undefined {
  const name = (title ?? '')
    .replaceAll(/[^\p{ASCII}]|[^a-zA-Z0-9\s()[\]-]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .slice(0, name_length_max)
    .trim();
  return name === '' ? undefined : name;
}

function imageOf(source: Source, at: string): JsonObject {
  const { media_type, data } = inlineOf(source, at);
  const format = image_formats.get(media_type);
  if (format === undefined) throw notCarried(at, `An image that is none of ${[...image_formats.keys()].join(', ')}`);
  return { format, source: { bytes: data } };
}

function inlineOf(source: Source, at: string): Extract<Source, { type: 'base64' }> {
  if (source.type === 'url') throw notCarried(at, 'A link');
  return source;
}

/** A block, and the point after it up to which the input is to be cached. */
export function marked(block: JsonObject, { cache_control }: { type?: string; cache_control?: Json }): JsonObject[] {
  if (!isObject(cache_control)) return [block];
  const { ttl } = cache_control;
  return [block, { cachePoint: { type: 'default', ...(typeof ttl === 'string' && { ttl }) } }];
}

/** The blocks of a system prompt. */
export function systemBlocks(texts: readonly TextPart[]): JsonObject[] {
  return texts.flatMap((part) => marked({ text: part.text }, part));
}

/** A message with a document must have a text, too. */
function besideDocuments({ content }: Message): void {
  const has_document = content.some((block) => block['document'] !== undefined);
  if (has_document && !content.some((block) => block['text'] !== undefined))
    content.push({ text: '(See the document.)' });
}

/** A last turn of the assistant's may not end in white space. */
function trimLast(messages: readonly Message[]): void {
  const last = messages.at(-1);
  const block = last?.content.at(-1);
  if (last?.role === 'assistant' && typeof block?.['text'] === 'string') block['text'] = block['text'].trimEnd();
}
