import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';

/**
 * Texts with names such as `$model`, `$input.voice` and `$saved.token` in them; `$$` is a dollar sign. Nothing else is
 * evaluated, and a value is never read as a template.
 */

/** Values by name. */
export type Words = { readonly [name: string]: string | undefined };

const word_form = /\$(\$|(?:input|saved|file)\.[A-Za-z0-9_]+|[A-Za-z_]*)/g;

/** The names in a text. */
export function wordsIn(text: string): string[] {
  return [...text.matchAll(word_form)].map(([, name = '']) => name).filter((name) => name !== '$');
}

/** The names in a text that are none of `allowed`, in which `input.NAME` is any field of the input. */
export function unknownWords(text: string, allowed: readonly string[]): string[] {
  return wordsIn(text)
    .filter((name) => !allowed.includes(name) && !allowed.includes(name.replace(/\..*$/s, '.NAME')))
    .map((name) => `$${name}`);
}

/** Returns the text that stands for a value in an address, a header or a form. */
type Encode = (value: string, name: string) => string;

/** The text with its words filled in; undefined if one of them has no value. */
export function fill(text: string, words: Words, encode: Encode = (value) => value): string | undefined {
  let is_whole = true;
  const filled = text.replaceAll(word_form, (_, name: string) => {
    if (name === '$') return '$';
    const value = Object.hasOwn(words, name) ? words[name] : undefined;
    if (value === undefined) is_whole = false;
    return value === undefined ? '' : encode(value, name);
  });
  return is_whole ? filled : undefined;
}

/** The same for each member; those without a value are left out. */
export function fillAll(
  texts: { readonly [name: string]: string },
  words: Words,
  encode?: Encode,
): Record<string, string> {
  const filled = Object.entries(texts).flatMap(([name, text]): [string, string][] => {
    const value = fill(text, words, encode);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(filled);
}

/** The members of an object that are texts, numbers or truth values, as `PREFIX.NAME`. */
export function wordsOf(prefix: string, object: JsonObject): Record<string, string> {
  const words = Object.entries(object).flatMap(([name, value]): [string, string][] => {
    const is_plain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    return is_plain ? [[`${prefix}.${name}`, String(value)]] : [];
  });
  return Object.fromEntries(words);
}

const whole_input = '$input';
/** Any name of a field, odd ones, too. */
const field_form = /^\$input\.(.+)$/s;

/** A member that says when the object around it is there: `{ $if: $input.image, url: $input.image }`. */
const condition = '$if';

/**
 * A body: `$input` is the run's input, `$input.NAME` a field of it as it is, other texts have their words filled in. What
 * has no value is left out, and so is a list of which nothing is left.
 */
export function fillBody(body: Json, input: JsonObject, words: Words): Json | undefined {
  if (Array.isArray(body)) {
    const items = body.map((item) => fillBody(item, input, words)).filter((item) => item !== undefined);
    return items.length === 0 && body.length > 0 ? undefined : items;
  }
  if (isObject(body)) {
    if (Object.hasOwn(body, condition) && !isThere(fillBody(body[condition] ?? null, input, words))) return undefined;
    const members = Object.entries(body).flatMap(([name, value]): [string, Json][] => {
      if (name === condition) return [];
      const filled = fillBody(value, input, words);
      return filled === undefined ? [] : [[name, filled]];
    });
    return Object.fromEntries(members);
  }
  if (typeof body !== 'string') return body;
  if (body === whole_input) return input;
  const field = field_form.exec(body)?.[1];
  if (field !== undefined && Object.hasOwn(input, field)) return input[field];
  return fill(body, words);
}

function isThere(value: Json | undefined): boolean {
  return value !== undefined && value !== null && value !== false && value !== '';
}

/** The names in a body that are none of `allowed`. */
export function unknownInBody(body: Json, allowed: readonly string[]): string[] {
  if (typeof body === 'string') {
    return body === whole_input ? [] : unknownWords(body, allowed);
  }
  if (typeof body !== 'object' || body === null) return [];
  return Object.values(body).flatMap((value) => unknownInBody(value, allowed));
}
