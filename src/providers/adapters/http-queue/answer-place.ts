import type { Json } from '../../../catalog/model.ts';
import { allAt, readPath, type AnswerPath } from '../../http/answer-path.ts';
import type { Answer } from '../../http/http.ts';

/**
 * Positions in an answer, in the order in which they are looked at: in its JSON (`$.data.id`), among its headers
 * (`$headers.x-cost`), or its `$http_status`.
 */
export type AnswerPlace = readonly Position[];

type Position = { of: 'body' | 'headers' | 'status'; path: AnswerPath };

const headers_start = /^\$headers(?=[.[])/;

/** Reads a path, or a list of them; undefined if one of them names no position. */
export function readPlace(value: Json): AnswerPlace | undefined {
  const positions = [value].flat().flatMap((text) => (typeof text === 'string' ? (readPosition(text) ?? []) : []));
  return positions.length > 0 && positions.length === [value].flat().length ? positions : undefined;
}

function readPosition(text: string): Position | undefined {
  if (text === '$http_status') return { of: 'status', path: [] };
  const is_header = headers_start.test(text);
  const path = readPath(is_header ? text.replace(headers_start, '$').toLowerCase() : text);
  return path && { of: is_header ? 'headers' : 'body', path };
}

/** Tells whether one of the positions is among the headers, or is the status. */
export function looksAt(place: AnswerPlace, of: Position['of']): boolean {
  return place.some((position) => position.of === of);
}

/** All that stands there, in its order; nothing in the JSON of an answer that is none. */
export function allIn(answer: Answer, place: AnswerPlace): Json[] {
  return place.flatMap(({ of, path }) => {
    if (of === 'status') return [answer.status];
    return allAt(of === 'body' ? jsonOf(answer) : headersOf(answer), path);
  });
}

/** The first that stands there. */
export function firstIn(answer: Answer, place: AnswerPlace): Json | undefined {
  return allIn(answer, place)[0];
}

function headersOf({ headers }: Answer): Json {
  const there = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
  return Object.fromEntries(there);
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
