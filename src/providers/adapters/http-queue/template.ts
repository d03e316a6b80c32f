import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';

/** Values of the `$name` placeholders in the options; `$$` is a dollar sign. Nothing else is evaluated. */
export type Words = { readonly [word in Word]?: string | undefined };

export const word_names = ['model', 'id', 'task_id', 'events_url', 'key'] as const;

export type Word = (typeof word_names)[number];

const word_form = /\$(\$|[A-Za-z_]*)/g;

/** The names in a text that are none of `known`. */
export function unknownWords(text: string, words: readonly Word[]): string[] {
  const named = [...text.matchAll(word_form)].map(([, name = '']) => name);
  return named.filter((name) => name !== '$' && !words.some((word) => word === name)).map((name) => `$${name}`);
}

/** The text with its words filled in; undefined if one of them has no value. */
export function fill(text: string, words: Words): string | undefined {
  let is_whole = true;
  const filled = text.replaceAll(word_form, (_, name: string) => {
    if (name === '$') return '$';
    const value = word_names
      .map((word) => (word === name ? words[word] : undefined))
      .find((each) => each !== undefined);
    if (value === undefined) is_whole = false;
    return value ?? '';
  });
  return is_whole ? filled : undefined;
}

/** The same for each member; those without a value are left out. */
export function fillAll(texts: { readonly [name: string]: string }, words: Words): Record<string, string> {
  const filled = Object.entries(texts).flatMap(([name, text]): [string, string][] => {
    const value = fill(text, words);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(filled);
}

const whole_input = '$input';
const field_form = /^\$input\.(.+)$/s;

/**
 * A body: `$input` is the run's input, `$input.NAME` a field of it, other texts have their words filled in. What
 * has no value is left out.
 */
export function fillBody(body: Json, input: JsonObject, words: Words): Json | undefined {
  if (Array.isArray(body)) return body.map((item) => fillBody(item, input, words)).filter((item) => item !== undefined);
  if (isObject(body)) {
    const members = Object.entries(body).flatMap(([name, value]): [string, Json][] => {
      const filled = fillBody(value, input, words);
      return filled === undefined ? [] : [[name, filled]];
    });
    return Object.fromEntries(members);
  }
  if (typeof body !== 'string') return body;
  if (body === whole_input) return input;
  const field = field_form.exec(body)?.[1];
  if (field !== undefined) return Object.hasOwn(input, field) ? input[field] : undefined;
  return fill(body, words);
}

/** The names in a body that are none of `known`. */
export function unknownInBody(body: Json, words: readonly Word[]): string[] {
  if (typeof body === 'string') return body === whole_input || field_form.test(body) ? [] : unknownWords(body, words);
  if (typeof body !== 'object' || body === null) return [];
  return Object.values(body).flatMap((value) => unknownInBody(value, words));
}
