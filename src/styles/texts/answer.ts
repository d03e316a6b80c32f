import type { JsonObject } from '../../catalog/model.ts';
import type { AnswerOptions } from '../codec.ts';
import { readFinish, writeFinish } from '../completions/response.ts';
import { usage_format } from '../completions/usage.ts';
import { append } from '../../lib/append.ts';
import type { ChatAnswer, ChatEvent, FinishReason, Part, TokenLikelihood, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import type { ChatEventWriter } from '../stream.ts';

/** `echo`: the prompt, if the text is to begin with it. `has_logprobs`: the caller asked for them. */
type TextOptions = Pick<AnswerOptions, 'model' | 'request_id' | 'created'> & { echo: string; has_logprobs: boolean };

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
  const choices = answers.map(({ parts, finish, logprobs = [] }, index) => {
    const text = options.echo + parts.map(textOf).join('');
    const shown = options.has_logprobs ? logprobs : [];
    return choiceOf(text, { finish_reason: writeReason(finish.reason), index, logprobs: writeLogprobs(shown, 0) });
  });
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

type ChoiceEnd = { finish_reason?: string; index?: number; logprobs?: JsonObject | null };

function choiceOf(text: string, { finish_reason, index = 0, logprobs = null }: ChoiceEnd = {}): JsonObject {
  return { text, index, logprobs, finish_reason: finish_reason ?? null };
}

/** The likelihoods of tokens in this style: lists side by side; `offset` is the place of the first one in the text. */
function writeLogprobs(tokens: readonly TokenLikelihood[], offset: number): JsonObject | null {
  if (tokens.length === 0) return null;
  let at = offset;
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ others, ...chosen }) =>
      Object.fromEntries([...others, chosen].map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: tokens.map(({ token }) => {
      const begin = at;
      at += lengthOf(token);
      return begin;
    }),
  };
}

/** Returns the length in characters, as the style counts offsets. */
function lengthOf(token: string): number {
  return [...token].length;
}

/** Renders a stream of pieces of one text. */
export class TextWriter implements ChatEventWriter {
  finish: string | undefined;
  readonly #options: TextOptions & { wants_usage: boolean };
  #reason: FinishReason = 'stop';
  #tokens: TokenLikelihood[] = [];
  /** Of the next token in the text. */
  #offset = 0;

  constructor(options: TextOptions & { wants_usage: boolean }) {
    this.#options = options;
  }

  write(event: ChatEvent, usage: () => Usage): string {
    switch (event.type) {
      case 'start':
        return this.#options.echo === '' ? '' : this.#chunk([choiceOf(this.#options.echo)]);
      case 'logprobs':
        if (this.#options.has_logprobs) append(this.#tokens, event.tokens);
        return '';
      case 'text':
      case 'refusal':
        return this.#chunk([choiceOf(event.text, { logprobs: this.#logprobs() })]);
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
    const last = this.#chunk([choiceOf('', { finish_reason: this.finish, logprobs: this.#logprobs() })]);
    if (!this.#options.wants_usage) return `${last}data: [DONE]\n\n`;
    return `${last}${this.#chunk([], usage_format.write(usage()))}data: [DONE]\n\n`;
  }

  /** Of the tokens since the last chunk. */
  #logprobs(): JsonObject | null {
    const tokens = this.#tokens;
    this.#tokens = [];
    const logprobs = writeLogprobs(tokens, this.#offset);
    for (const { token } of tokens) this.#offset += lengthOf(token);
    return logprobs;
  }

  #chunk(choices: JsonObject[], usage: JsonObject | null = null): string {
    const body = { ...headOf(this.#options), choices, ...(this.#options.wants_usage && { usage }) };
    return `data: ${JSON.stringify(body)}\n\n`;
  }
}
