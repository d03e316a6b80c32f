import type { Json } from '../../../catalog/model.ts';
import { allAt, readPath, type AnswerPath } from '../../http/answer-path.ts';
import type { Answer } from '../../http/http.ts';

/** A position in an answer: in its JSON (`$.data.id`), among its headers (`$headers.x-cost`), or its `$http_status`. */
export type AnswerPlace = { of: 'body' | 'headers' | 'status'; path: AnswerPath };

const headers_start = /^\$headers(?=[.[])/;

/** Undefined if `text` names no position. */
export function readPlace(text: string): AnswerPlace | undefined {
  if (text === '$http_status') return { of: 'status', path: [] };
  const is_header = headers_start.test(text);
  const path = readPath(is_header ? text.replace(headers_start, '$').toLowerCase() : text);
  return path && { of: is_header ? 'headers' : 'body', path };
}

/** All that stands there, in its order; nothing in the JSON of an answer that is none. */
export function allIn(answer: Answer, { of, path }: AnswerPlace): Json[] {
  if (of === 'status') return [answer.status];
  if (of === 'body') return allAt(jsonOf(answer), path);
  const headers = Object.entries(answer.headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  return allAt(Object.fromEntries(headers), path);
}

/** The first that stands there. */
export function firstIn(answer: Answer, place: AnswerPlace): Json | undefined {
  return allIn(answer, place)[0];
}

function jsonOf(answer: Answer): Json {
  if (isFile(answer)) return null;
  try {
    return answer.json();
  } catch {
    return null; // the page of a proxy: its status says what there is to say
  }
}

/** An image, a video or audio instead of a word about one. */
export function isFile({ headers }: Answer): boolean {
  return /^(?:image|video|audio)\//i.test(headers['content-type'] ?? '');
}
