import { ApiError, invalidField } from '../errors.ts';
import { nearest } from '../lib/edit-distance.ts';
import { isoTime } from '../lib/iso-time.ts';
import type { ParameterDocs, Query } from './endpoint.ts';

const empty: Query = new Map();

/**
 * Parses the text after `?`. Throws ApiError 400 for what cannot be decoded, for a parameter that
 * comes twice, and, unless `declared` is undefined, for one that is not declared: a misspelt filter
 * that is ignored shows other people's idea of the data.
 */
export function parseQuery(text: string, declared: Record<string, ParameterDocs> | undefined): Query {
  if (text === '') return empty;
  const query = new Map<string, string>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1));
    if (declared) checkDeclared(name, declared);
    if (query.has(name) && declared) throw invalidField(name, `The query parameter ${shown(name)} is given twice.`);
    query.set(name, value);
  }
  return query;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new ApiError('invalid_request', `The query contains ${shown(text)}, which is not valid percent-encoding.`);
  }
}

function checkDeclared(name: string, declared: Record<string, ParameterDocs>): void {
  const base = /^(.+)\[[^\]]*\]$/.exec(name)?.[1];
  const parameter = declaredAs(declared, base ?? name);
  if (parameter && isObjectSchema(parameter) === (base !== undefined)) return;
  const near = nearest(name, Object.keys(declared));
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  throw invalidField(name, `${shown(name)} is not a known query parameter.${hint}`);
}

function declaredAs(declared: Record<string, ParameterDocs>, name: string): ParameterDocs | undefined {
  return Object.hasOwn(declared, name) ? declared[name] : undefined;
}

/** Returns true for a parameter that is written `name[key]=value`. */
export function isObjectSchema(parameter: ParameterDocs): boolean {
  return 'type' in parameter.schema && parameter.schema.type === 'object';
}

/** The members of an object parameter: `metadata[a]=1&metadata[b]=2` gives `{ a: '1', b: '2' }`. */
export function objectParameter(query: Query, name: string): Record<string, string> {
  const members: [string, string][] = [];
  for (const [key, value] of query) {
    if (key.startsWith(`${name}[`)) members.push([key.slice(name.length + 1, -1), value]);
  }
  return Object.fromEntries(members);
}

/** A whole number from `min` to `max`; undefined if absent. Throws ApiError 400 naming it. */
export function wholeNumber(query: Query, name: string, range: { min: number; max: number }): number | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  if (value >= range.min && value <= range.max) return value;
  throw invalidField(name, `${name} must be a whole number from ${range.min} to ${range.max} (got ${shown(text)}).`);
}

/** Returns one of `values`; undefined if absent. Throws ApiError 400 naming it. */
export function oneOf<T extends string>(query: Query, name: string, values: readonly T[]): T | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  const value = values.find((candidate) => candidate === text);
  if (value !== undefined) return value;
  const near = nearest(text, values);
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  const list = values.map((each) => `"${each}"`).join(', ');
  throw invalidField(name, `${name} must be one of ${list} (got ${shown(text)}).${hint}`);
}

/** A moment as ISO 8601 (a date alone is its start, UTC); undefined if absent. Throws ApiError 400. */
export function moment(query: Query, name: string): Date | undefined {
  const text = query.get(name);
  if (text === undefined) return undefined;
  const date = isoTime(text);
  if (date) return date;
  throw invalidField(name, `${name} must be a time such as 2026-01-31 or 2026-01-31T12:00:00Z (got ${shown(text)}).`);
}

/** A place in a list: the value, and the parameter that has it. */
export type Cursor = { param: string; id: string };

/**
 * Returns the places in a list that a query names by `after` and `before`, which may be written `after_id` and
 * `before_id`. Throws ApiError 400 where there is more than one.
 */
export function cursorsOf(query: Query): { after: Cursor | undefined; before: Cursor | undefined } {
  const [after, before] = [cursorNamed(query, 'after'), cursorNamed(query, 'before')];
  if (after && before) throw invalidField('before', 'after and before cannot be given together.');
  return { after, before };
}

function cursorNamed(query: Query, name: 'after' | 'before'): Cursor | undefined {
  const present = [name, `${name}_id`].filter((alias) => query.has(alias));
  if (present.length > 1) throw invalidField(name, `${name} and ${name}_id mean the same: send one.`);
  const [param] = present;
  return param === undefined ? undefined : { param, id: query.get(param) ?? '' };
}

const range_ms_max = 400 * 86_400_000;

/**
 * Returns `from` (inclusive) and `to` (exclusive), which are at most 400 days apart. `usual` has what an absent one is;
 * the beginning may follow from the end. Throws ApiError 400.
 */
export function timeRange(query: Query, usual: { from: (to: Date) => Date; to: Date }): { from: Date; to: Date } {
  const to = moment(query, 'to') ?? usual.to;
  const from = moment(query, 'from') ?? usual.from(to);
  if (to <= from) throw invalidField('to', 'to must be later than from.');
  if (to.getTime() - from.getTime() > range_ms_max)
    throw invalidField('from', 'from and to may be at most 400 days apart.');
  return { from, to };
}

/** At most 60 characters of what the caller sent, quoted. */
function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
