import { isObject, type Json } from '../../../catalog/model.ts';
import { refusedAs } from '../../http/answers.ts';
import type { Answer } from '../../http/http.ts';
import { textIn } from '../../http/reading.ts';
import { decimalOf } from '../../http/upstream-cost.ts';
import { allIn, firstIn, isFile, looksAt, type AnswerPlace } from './answer-place.ts';
import { meanings, type Errors, type Meaning, type Status } from './plan.ts';

/** An error in a response: its code, its message, and their meaning by the route's options. */
export type Trouble = { code: string; message: string; meaning: Meaning | undefined };

/**
 * Returns what is wrong with an answer, undefined if nothing is: by its status and, where the options name one, by its
 * code.
 */
export function troubleIn(answer: Answer, errors: Errors): Trouble | undefined {
  const is_code_beside = errors.code !== undefined && looksAt(errors.code, 'headers');
  if (answer.ok && isFile(answer) && !is_code_beside) return undefined;
  const code = codeIn(answer, errors);
  // Where HTTP says that all is well, an answer without a code says nothing else.
  if (answer.ok && (errors.ok === undefined || code === '' || errors.ok.includes(code))) return undefined;
  return troubleOf(code, textAt(answer, errors.message), errors);
}

/** The code of an answer. Of several, one for each file, a good one counts: there is a file to be had. */
function codeIn(answer: Answer, { code, ok }: Errors): string {
  if (!code) return '';
  const codes = allIn(answer, code).map((value) => wordOf(textOf(value)));
  return codes.find((each) => ok?.includes(each)) ?? codes[0] ?? '';
}

/** The trouble of a run that has failed. */
export function troubleOf(code: string, message: string, { meanings: words_of }: Errors): Trouble {
  const text = message.toLowerCase();
  const meaning = meanings.find((each) =>
    words_of[each].some((word) => word === code || isIn(code, word) || isIn(text, word)),
  );
  return { code, message, meaning };
}

/** A number or a truth value is a code and nothing else; a word may stand anywhere in the message. */
function isIn(text: string, word: string): boolean {
  return /\p{L}/u.test(word) && !/^(?:true|false)$/.test(word) && text.includes(word);
}

/** HTTP status of each meaning. */
const statuses: { readonly [meaning in Meaning]: number } = {
  moderation: 400,
  input: 400,
  credentials: 401,
  rate_limit: 429,
  unavailable: 503,
  failed: 503,
  unknown: 503,
};

/** An answer that is a refusal, in the usual form: a status that says what it is, and `{code, message}`. */
export function refusalIn(response: Answer, { code, message, meaning }: Trouble, errors: Errors): Answer {
  const answer = withRetryAfter(response, errors);
  if (meaning === 'moderation')
    return refusedAs(answer, statuses.moderation, { code: 'content_policy_violation', message });
  if (meaning !== undefined) return refusedAs(answer, statuses[meaning], { code, message });
  if (!answer.ok && message === '') return answer;
  return refusedAs(answer, answer.ok ? statusLike(code) : answer.status, { code, message });
}

/** Some say in the body how many seconds to wait. */
function withRetryAfter(answer: Answer, { retry_after }: Errors): Answer {
  const seconds = retry_after && decimalOf(firstIn(answer, retry_after));
  return seconds === undefined ? answer : { ...answer, headers: { ...answer.headers, 'retry-after': seconds } };
}

/** Many put a status of HTTP where HTTP says that all is well. */
function statusLike(code: string): number {
  return /^[45]\d\d$/.test(code) ? Number(code) : statuses.unavailable;
}

/** A status word or a code, in small letters; empty if there is none. */
export function wordAt(answer: Answer, place: AnswerPlace | undefined): string {
  return wordOf(textAt(answer, place));
}

/** The state of a run: of several words the first whose meaning is known, else the first. */
export function stateAt(answer: Answer, { state, states }: Status, place = state): string {
  const words = allIn(answer, place)
    .map((value) => wordOf(textOf(value)))
    .filter((word) => word !== '');
  const listed = Object.values(states).flat();
  return words.find((word) => listed.includes(word)) ?? words[0] ?? '';
}

function wordOf(text: string): string {
  return text.trim().toLowerCase();
}

/** Returns the text at the place; of an object, its `message`. */
export function textAt(answer: Answer, place: AnswerPlace | undefined): string {
  return place ? textOf(firstIn(answer, place)) : '';
}

function textOf(value: Json | undefined): string {
  if (isObject(value)) return textIn(value, 'message') ?? '';
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
