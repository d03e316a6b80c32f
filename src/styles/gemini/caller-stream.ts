import type { JsonObject } from '../../catalog/model.ts';
import { inputOf } from '../calls.ts';
import type { AnswerOptions, ChatRequest } from '../codec.ts';
import type { ChatEvent, FinishReason, Usage, WebSearch } from '../conversation.ts';
import type { ChatEventWriter } from '../stream.ts';
import { answerId, writeFinish, writePart } from './caller-response.ts';
import { showsThoughts } from './caller-settings.ts';
import { frame } from './errors.ts';
import { groundingOf } from './searches.ts';
import { usage_format } from './usage.ts';

type Call = { id: string; name: string; json: string; thought_signature?: string };

/** Each chunk is an answer by itself with what is new in it. A call is never in pieces: it comes before the end, whole. */
export class GeminiWriter implements ChatEventWriter {
  finish: string | undefined;
  readonly #own: JsonObject;
  readonly #shows: boolean;
  readonly #calls = new Map<number, Call>();
  #reason: FinishReason = 'stop';
  readonly #searches: WebSearch[] = [];
  /** The text after the first search. */
  #text = '';

  constructor({ body }: ChatRequest, { model, request_id }: AnswerOptions) {
    this.#own = { modelVersion: model, responseId: answerId(request_id) };
    this.#shows = showsThoughts(body);
  }

  write(event: ChatEvent, usage: () => Usage): string {
    switch (event.type) {
      case 'text':
      case 'refusal':
        if (this.#searches.length > 0) this.#text += event.text;
        return event.text === '' ? '' : this.#say([{ text: event.text }]);
      case 'text_signature':
        return this.#say([{ text: '', thoughtSignature: event.thought_signature }]);
      case 'thinking':
      case 'redacted_thinking':
        return this.#say(writePart(event, this.#shows));
      case 'signature':
        return this.#say(writePart({ type: 'thinking', text: '', signature: event.signature }, this.#shows));
      case 'tool_call': {
        const { index, id, name, thought_signature } = event;
        this.#calls.set(index, { id, name, json: '', ...(thought_signature !== undefined && { thought_signature }) });
        return '';
      }
      case 'tool_arguments': {
        const call = this.#calls.get(event.index);
        if (call) call.json += event.json;
        return '';
      }
      case 'web_search':
        this.#searches.push(event);
        return '';
      case 'finish':
        this.#reason = event.reason;
        return '';
      case 'end':
        return this.#end(usage());
      default:
        return '';
    }
  }

  #end(usage: Usage): string {
    this.finish = writeFinish(this.#reason);
    const calls = [...this.#calls.values()].map(({ id, name, json, thought_signature }) => ({
      functionCall: { id, name, args: inputOf(json) },
      ...(thought_signature !== undefined && { thoughtSignature: thought_signature }),
    }));
    const parts = calls.length > 0 ? calls : [{ text: '' }];
    const grounding = this.#searches.length > 0 && { groundingMetadata: groundingOf(this.#text, this.#searches) };
    const candidate = { content: { parts, role: 'model' }, finishReason: this.finish, index: 0, ...grounding };
    return this.#chunk(candidate, usage);
  }

  #say(parts: JsonObject[]): string {
    return parts.length === 0 ? '' : this.#chunk({ content: { parts, role: 'model' }, index: 0 });
  }

  #chunk(candidate: JsonObject, usage?: Usage): string {
    const counts = usage && { usageMetadata: usage_format.write(usage) };
    return frame({ candidates: [candidate], ...counts, ...this.#own }).toString();
  }
}
