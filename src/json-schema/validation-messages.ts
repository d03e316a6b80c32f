import type { ErrorObject } from 'ajv';
import { nearest } from '../lib/edit-distance.ts';
import { valueAt } from '../lib/json-pointer.ts';
import { schemaOf } from './branches.ts';
import { jsonType, showValue } from '../lib/show-value.ts';

/** An error of Ajv, what it is about, and how members of that value are called. */
type Mistake = {
  keyword: string;
  params: Record<string, unknown>;
  value: unknown;
  schema: object;
  memberName: (key: string) => string;
};

/** Returns the message about `value`: `must be at most 10 (got 99).` The field's name goes before it. */
export function validationMessage(
  error: ErrorObject,
  value: unknown,
  memberName: (key: string) => string,
  schema: object,
): string {
  const { keyword, params } = error;
  const mistake: Mistake = { keyword, params, value, memberName, schema: schemaOf(error, schema) };
  const sentence = ofType(mistake) ?? ofNumber(mistake) ?? ofSize(mistake) ?? ofChoice(mistake) ?? ofForm(mistake);
  return sentence ?? ofCombination(mistake) ?? `${error.message ?? `does not fit the rule ${showValue(keyword)}`}.`;
}

/** `a, b or c`. */
export function list(words: readonly string[], last: 'and' | 'or'): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}

const type_names: ReadonlyMap<unknown, string> = new Map([
  ['string', 'a string'],
  ['number', 'a number'],
  ['integer', 'an integer'],
  ['boolean', 'a boolean'],
  ['array', 'an array'],
  ['object', 'an object'],
]);

function ofType({ keyword, params, value }: Mistake): string | undefined {
  if (keyword !== 'type') return undefined;
  const types = [params['type']].flat();
  const names = types.map((type) => type_names.get(type) ?? String(type));
  const got = typeof value === 'number' && types.includes('integer') ? showValue(value) : jsonType(value);
  return `must be ${list(names, 'or')} (got ${got}).`;
}

const comparisons: ReadonlyMap<string, string> = new Map([
  ['maximum', 'at most'],
  ['minimum', 'at least'],
  ['exclusiveMaximum', 'less than'],
  ['exclusiveMinimum', 'greater than'],
]);

function ofNumber({ keyword, params, value }: Mistake): string | undefined {
  if (keyword === 'multipleOf')
    return `must be a multiple of ${showValue(params['multipleOf'])} (got ${showValue(value)}).`;
  const comparison = comparisons.get(keyword);
  return comparison && `must be ${comparison} ${showValue(params['limit'])} (got ${showValue(value)}).`;
}

const sizes: ReadonlyMap<string, { bound: string; one: string; many: string }> = new Map([
  ['maxLength', { bound: 'at most', one: 'character', many: 'characters' }],
  ['minLength', { bound: 'at least', one: 'character', many: 'characters' }],
  ['maxItems', { bound: 'at most', one: 'item', many: 'items' }],
  ['minItems', { bound: 'at least', one: 'item', many: 'items' }],
  ['items', { bound: 'at most', one: 'item', many: 'items' }],
  ['unevaluatedItems', { bound: 'at most', one: 'item', many: 'items' }],
  ['maxProperties', { bound: 'at most', one: 'field', many: 'fields' }],
  ['minProperties', { bound: 'at least', one: 'field', many: 'fields' }],
]);

function ofSize({ keyword, params, value }: Mistake): string | undefined {
  const size = sizes.get(keyword);
  const limit = params['limit'] ?? params['len'];
  return (
    size && `must have ${size.bound} ${showValue(limit)} ${limit === 1 ? size.one : size.many} (got ${sizeOf(value)}).`
  );
}

/** Items, fields, or characters as JSON Schema counts them: code points. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length - (value.match(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g)?.length ?? 0);
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

const choices_shown_max = 20;

function ofChoice({ keyword, params, value }: Mistake): string | undefined {
  if (keyword !== 'const' && keyword !== 'enum') return undefined;
  const choices = keyword === 'const' ? [params['allowedValue']] : [params['allowedValues']].flat();
  const shown = choices.slice(0, choices_shown_max).map(showValue);
  const hidden = choices.length - shown.length;
  if (hidden > 0) shown.push(`or one of ${hidden} more`);
  const is_word = typeof value === 'string' || typeof value === 'number';
  const near = is_word ? nearest(String(value), choices.map(String)) : undefined;
  const meant = choices.find((choice) => String(choice) === near);
  const hint = meant === undefined ? '' : ` Did you mean ${showValue(meant)}?`;
  return `must be ${choices.length > 1 ? 'one of ' : ''}${shown.join(', ')} (got ${showGot(value)}).${hint}`;
}

/** Texts, numbers and the like as they are; of objects and arrays only that they are one. */
function showGot(value: unknown): string {
  return typeof value === 'object' ? jsonType(value) : showValue(value);
}

const format_names: ReadonlyMap<unknown, string> = new Map([
  ['uri', 'a URL'],
  ['url', 'a URL'],
  ['iri', 'a URL'],
  ['uri-reference', 'a URL or a path'],
  ['email', 'an e-mail address'],
  ['date-time', 'a time such as 2026-01-31T12:00:00Z'],
  ['date', 'a date such as 2026-01-31'],
  ['time', 'a time of day such as 12:00:00Z'],
  ['duration', 'a duration such as PT30S'],
  ['uuid', 'a UUID'],
  ['hostname', 'a host name'],
  ['ipv4', 'an IPv4 address'],
  ['ipv6', 'an IPv6 address'],
  ['regex', 'a regular expression'],
  ['byte', 'base64'],
]);

function ofForm({ keyword, params, value }: Mistake): string | undefined {
  switch (keyword) {
    case 'format':
      return `must be ${format_names.get(params['format']) ?? `of the format ${showValue(params['format'])}`}.`;
    case 'pattern':
      return `must match the pattern ${String(params['pattern'])} (got ${showValue(value)}).`;
    case 'uniqueItems':
      return `must not have the same item twice (items ${String(params['j'])} and ${String(params['i'])}).`;
    case 'contains':
      return `must have at least ${String(params['minContains'])} fitting item${params['minContains'] === 1 ? '' : 's'}.`;
    case 'false schema':
      return 'is not allowed.';
    default:
      return undefined;
  }
}

function ofCombination({ keyword, params, value, schema, memberName }: Mistake): string | undefined {
  const together = (branch: unknown): string[] =>
    [valueAt(branch, ['required']) ?? []].flat().map(String).map(memberName);
  if (keyword === 'not') {
    const names = together(valueAt(schema, ['not']));
    return names.length > 1
      ? `must not have ${list(names, 'and')} together.`
      : `must not be this value (got ${showGot(value)}).`;
  }
  if (keyword === 'anyOf') return `fits none of the allowed forms (got ${showGot(value)}).`;
  if (keyword !== 'oneOf') return undefined;
  const passing: unknown = params['passingSchemas'];
  if (!Array.isArray(passing)) return `fits none of the allowed forms (got ${showGot(value)}).`;
  const names = passing.flatMap((index) => together(valueAt(schema, ['oneOf', String(index)])));
  return names.length > 1
    ? `must have only one of ${list(names, 'and')}.`
    : 'fits more than one of the allowed forms; it must fit exactly one.';
}
