import { isObject, type JsonObject } from '../../../catalog/model.ts';
import { firstAt, type AnswerPath } from '../../http/answer-path.ts';
import { refusedAs } from '../../http/answers.ts';
import type { Answer } from '../../http/http.ts';
import { textIn } from '../../http/reading.ts';
import { meanings, type Errors, type Meaning } from './plan.ts';

/** An error in a response: its code, its message, and their meaning by the route's options. */
export type Trouble = { code: string; message: string; meaning: Meaning | undefined };

/** An image, a video or audio instead of a word about one. */
export function isFile({ headers }: Answer): boolean {
  return /^(?:image|video|audio)\//i.test(headers['content-type'] ?? '');
}

/** Undefined if nothing is wrong with an answer, by its status and, where the options name one, by its code. */
export function troubleIn(answer: Answer, errors: Errors): Trouble | undefined {
  if (answer.ok && isFile(answer)) return undefined;
  const response = objectOf(answer);
  const code = wordAt(response, errors.code);
  // Where HTTP says that all is well, an answer without a code says nothing else.
  if (answer.ok && (errors.ok.length === 0 || code === '' || errors.ok.includes(code))) return undefined;
  return troubleOf(code, wordsAt(response, errors.message), errors);
}

/** The trouble of a run that has failed. */
export function troubleOf(code: string, message: string, { meanings: words_of }: Errors): Trouble {
  const text = message.toLowerCase();
  const meaning = meanings.find((each) => words_of[each].some((word) => word === code || isIn(text, word)));
  return { code, message, meaning };
}

/** A number is a code and nothing else; a word may stand anywhere in the message. */
function isIn(text: string, word: string): boolean {
  return /\p{L}/u.test(word) && text.includes(word);
}

/** HTTP status of each meaning. */
const statuses: { readonly [meaning in Meaning]: number } = {
  moderation: 400,
  input: 400,
  credentials: 401,
  rate_limit: 429,
  unavailable: 503,
  failed: 503,
};

/** An answer that is a refusal, in the usual form: a status that says what it is, and `{code, message}`. */
export function refusalIn(answer: Answer, { code, message, meaning }: Trouble): Answer {
  if (meaning === 'moderation')
    return refusedAs(answer, statuses.moderation, { code: 'content_policy_violation', message });
  if (meaning !== undefined) return refusedAs(answer, statuses[meaning], { code, message });
  if (!answer.ok && message === '') return answer;
  return refusedAs(answer, answer.ok ? statusLike(code) : answer.status, { code, message });
}

/** Many put a status of HTTP where HTTP says that all is well. */
function statusLike(code: string): number {
  return /^[45]\d\d$/.test(code) ? Number(code) : statuses.unavailable;
}

function objectOf(answer: Answer): JsonObject {
  try {
    return answer.object();
  } catch {
    return {}; // the page of a proxy, or no object: its status tells what there is to tell
  }
}

/** A status word or a code, in small letters; empty if there is none. */
export function wordAt(answer: JsonObject, path: AnswerPath | undefined): string {
  return wordsAt(answer, path).trim().toLowerCase();
}

/** Returns the text at the path; of an object, its `message`. */
export function wordsAt(answer: JsonObject, path: AnswerPath | undefined): string {
  const value = path && firstAt(answer, path);
  if (isObject(value)) return textIn(value, 'message') ?? '';
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';
}
