import type { JsonObject } from '../../catalog/model.ts';
import { inputOf, type ToolNames } from '../calls.ts';
import { documentText } from '../completions/render-request.ts';
import type { Part, Source, Turn } from '../conversation.ts';
import { mistake } from '../fields.ts';
import type { Link } from '../codec.ts';
import type { Quirks } from '../quirks.ts';
import { no_thought_signature } from '../thought-signatures.ts';
import { opening } from '../turns.ts';

type PartOf<T extends Part['type']> = Extract<Part, { type: T }>;

type Content = { role: 'user' | 'model'; parts: JsonObject[] };

/** Writes the turns of a conversation for Gemini, and finds the links in them. */
export class TurnsWriter {
  readonly links: Link[] = [];
  readonly #names: ToolNames;
  readonly #quirks: Quirks;
  /** Results name the function beside the id of its call. */
  readonly #called = new Map<string, string>();

  constructor(names: ToolNames, quirks: Quirks) {
    this.#names = names;
    this.#quirks = quirks;
  }

  /** Throws ApiError 400 if nothing is said. */
  write(turns: readonly Turn[]): Content[] {
    const contents = turns
      .flatMap((turn) => (turn.role === 'assistant' ? [this.#model(turn)] : this.#user(turn)))
      .filter(({ parts }) => parts.length > 0);
    if (contents.length === 0) throw mistake('messages', 'must hold some text');
    // A greeting of the assistant's may begin a chat elsewhere; here a user's turn must.
    if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: opening }] });
    return contents;
  }

  #model({ parts }: Turn): Content {
    const calls = parts.filter((part) => part.type === 'tool_call');
    const is_signed = this.#mustSign() && calls.every((call) => call.thought_signature === undefined);
    const [first] = calls;
    const written = parts.flatMap((part): JsonObject[] => {
      if (part.type === 'tool_call')
        return [this.#call(part === first && is_signed ? { ...part, thought_signature: no_thought_signature } : part)];
      return part.type === 'text' || part.type === 'refusal' ? textPart(part) : [];
    });
    return { role: 'model', parts: written };
  }

  /** Since Gemini 3, which thinks by levels, the first call of each turn must have a thought signature. */
  #mustSign(): boolean {
    return this.#quirks.thinking !== 'budget' && this.#quirks.thinking !== 'none';
  }

  #call({ id, name, arguments: text, thought_signature }: PartOf<'tool_call'>): JsonObject {
    const own_name = this.#names.forUpstream(name);
    this.#called.set(id, own_name);
    return {
      functionCall: { id, name: own_name, args: inputOf(text) },
      ...(thought_signature !== undefined && { thoughtSignature: thought_signature }),
    };
  }

  /** Results stand alone, right after their calls; what the user says beside them follows. */
  #user({ parts }: Turn): Content[] {
    const results = parts.filter((part) => part.type === 'tool_result');
    const remaining = [
      ...(this.#quirks.result_media === false ? results.flatMap(mediaBehind) : []),
      ...parts.filter((part) => part.type !== 'tool_result'),
    ];
    return [
      { role: 'user', parts: results.map((result) => this.#result(result)) },
      { role: 'user', parts: remaining.flatMap((part) => this.#part(part)) },
    ];
  }

  #result({ id, parts, is_error }: PartOf<'tool_result'>): JsonObject {
    const is_inside = this.#quirks.result_media !== false;
    const texts = parts.flatMap((part) => {
      if (part.type === 'text') return [part.text];
      if (isTextDocument(part)) return [documentText(part, part.source.text)];
      return is_inside ? [] : [`(see the ${part.type} in the next message)`];
    });
    const media = is_inside ? parts.filter((part) => part.type !== 'text' && !isTextDocument(part)) : [];
    const written = media.flatMap((part) => this.#part(part));
    const files = written.filter((part) => part['inlineData'] !== undefined);
    // Names of files: a result has text in its response alone.
    const names = written.flatMap((part) => (typeof part['text'] === 'string' ? [part['text']] : []));
    const text = [...texts, ...names].join('\n');
    return {
      functionResponse: {
        id,
        name: this.#called.get(id) ?? '',
        response: is_error ? { error: text } : { output: text },
        ...(files.length > 0 && { parts: files }),
      },
    };
  }

  #part(part: Part): JsonObject[] {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return textPart(part);
      case 'image':
        return [this.#inline(part.source, part.at)];
      case 'document':
        return this.#document(part);
      case 'audio':
        return [{ inlineData: { mimeType: audioType(part.format), data: part.data } }];
      default:
        return [];
    }
  }

  #document(part: PartOf<'document'>): JsonObject[] {
    const { source, title, at } = part;
    if (source.type === 'text') return textPart({ type: 'text', text: documentText(part, source.text) });
    const name = title === undefined ? [] : textPart({ type: 'text', text: title });
    return [...name, this.#inline(source, at)];
  }

  #inline(source: Source, at: string): JsonObject {
    if (source.type === 'base64') return { inlineData: { mimeType: source.media_type, data: source.data } };
    const inline = { mimeType: '', data: '' };
    this.links.push({ url: source.url, at, inline });
    return { inlineData: inline };
  }
}

/** An empty text is refused, but for the thought signature that it may carry. */
function textPart(part: PartOf<'text'> | PartOf<'refusal'>): JsonObject[] {
  const thought_signature = part.type === 'text' ? part.thought_signature : undefined;
  if (part.text === '' && thought_signature === undefined) return [];
  return [{ text: part.text, ...(thought_signature !== undefined && { thoughtSignature: thought_signature }) }];
}

function isTextDocument(part: Part): part is PartOf<'document'> & { source: { type: 'text' } } {
  return part.type === 'document' && part.source.type === 'text';
}

/** Files of a result for models that take none within. */
function mediaBehind({ id, parts }: PartOf<'tool_result'>): Part[] {
  const media = parts.filter((part) => part.type !== 'text' && !isTextDocument(part));
  if (media.length === 0) return [];
  return [{ type: 'text', text: `From the result of the tool call ${id}:` }, ...media];
}

function audioType(format: string): string {
  return format === 'pcm16' ? 'audio/L16;rate=24000' : `audio/${format.toLowerCase()}`;
}
