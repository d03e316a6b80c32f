import type { JsonObject } from '../../catalog/model.ts';
import type { AnswerOptions } from '../codec.ts';
import { readFinish, writeFinish } from '../completions/response.ts';
import { usage_format } from '../completions/usage.ts';
import type { ChatAnswer, ChatEvent, FinishReason, Part, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import type { StreamWriter } from '../stream.ts';

/** `echo`: the prompt, if the text is to begin with it. */
type TextOptions = Pick<AnswerOptions, 'model' | 'request_id' | 'created'> & { echo: string };

/** The id of an answer. */
export function answerId(request_id: string): string {
  return `cmpl-${request_id}`;
}

export const object = 'text_completion';

/** Reads a whole answer, one per choice. Throws Error for what is none. */
export function readTexts({ id, error, choices, usage }: JsonObject): ChatAnswer[] {
  if (isObject(error)) throw new Error('The answer is an error.');
  const list = Array.isArray(choices) ? choices.filter(isObject) : [];
  if (list.length === 0) throw new Error('The answer has no choices.');
  return list.map(({ text, finish_reason }) => {
    if (typeof text !== 'string') throw new Error('A choice has no text.');
    return {
      parts: text === '' ? [] : [{ type: 'text', text }],
      finish: { reason: readFinish(finish_reason, { has_calls: false, has_refusal: false }) },
      id: typeof id === 'string' && id !== '' ? id : undefined,
      usage: usage_format.read(usage),
    };
  });
}

/** The body of an answer, with a choice for each. */
export function writeTexts(answers: readonly ChatAnswer[], usage: Usage, options: TextOptions): JsonObject {
  const choices = answers.map(({ parts, finish }, index) =>
    choiceOf(options.echo + parts.map(textOf).join(''), writeReason(finish.reason), index),
  );
  return { ...headOf(options), choices, usage: usage_format.write(usage) };
}

/** Text of a part; none for thinking, which is no part of a text. */
function textOf(part: Part): string {
  return part.type === 'text' || part.type === 'refusal' ? part.text : '';
}

function writeReason(reason: FinishReason): string {
  return writeFinish(reason, false, false);
}

function headOf({ model, request_id, created }: TextOptions): JsonObject {
  return { id: answerId(request_id), object, created, model };
}

function choiceOf(text: string, finish_reason: string | null, index = 0): JsonObject {
  return { text, index, logprobs: null, finish_reason };
}

/** Renders a stream of pieces of one text. */
export class TextWriter implements StreamWriter {
  finish: string | undefined;
  readonly #options: TextOptions & { wants_usage: boolean };
  #reason: FinishReason = 'stop';

  constructor(options: TextOptions & { wants_usage: boolean }) {
    this.#options = options;
  }

  write(event: ChatEvent, usage: () => Usage): string {
    switch (event.type) {
      case 'start':
        return this.#options.echo === '' ? '' : this.#chunk([choiceOf(this.#options.echo, null)]);
      case 'text':
      case 'refusal':
        return this.#chunk([choiceOf(event.text, null)]);
      case 'finish':
        this.#reason = event.reason;
        return '';
      case 'end':
        return this.#end(usage);
      case 'ping':
        return ': keep-alive\n\n';
      default:
        return '';
    }
  }

  #end(usage: () => Usage): string {
    this.finish = writeReason(this.#reason);
    const last = this.#chunk([choiceOf('', this.finish)]);
    if (!this.#options.wants_usage) return `${last}data: [DONE]\n\n`;
    return `${last}${this.#chunk([], usage_format.write(usage()))}data: [DONE]\n\n`;
  }

  #chunk(choices: JsonObject[], usage: JsonObject | null = null): string {
    const body = { ...headOf(this.#options), choices, ...(this.#options.wants_usage && { usage }) };
    return `data: ${JSON.stringify(body)}\n\n`;
  }
}
