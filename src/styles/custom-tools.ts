import type { JsonObject } from '../catalog/model.ts';
import { inputOf } from './calls.ts';
import type { Tool } from './conversation.ts';
import { isObject, needName, readText } from './fields.ts';

/**
 * Tools that take a free text instead of arguments (custom), as functions with one argument, for upstreams that have
 * functions only.
 */

const schema: JsonObject = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as plain text.' } },
  required: ['input'],
  additionalProperties: false,
};

/** Reads the definition of a custom tool. Throws ApiError 400 naming the field. */
export function customTool(value: JsonObject, at: string): Tool {
  const description = readText(value, 'description', `${at}.description`) ?? '';
  const texts = [description, grammarOf(value)].filter((text) => text !== '');
  return {
    name: needName(value, 'name', `${at}.name`),
    schema,
    ...(texts.length > 0 && { description: texts.join('\n\n') }),
  };
}

/** A model that is not held to the grammar reads it. Chat completions have it one level deeper. */
function grammarOf({ format }: JsonObject): string {
  if (!isObject(format) || format['type'] !== 'grammar') return '';
  const grammar = isObject(format['grammar']) ? format['grammar'] : format;
  const { syntax, definition } = grammar;
  if (typeof definition !== 'string') return '';
  const language = typeof syntax === 'string' ? `${syntax} ` : '';
  return `\`input\` must match this ${language}grammar:\n\n${definition}`;
}

/** The arguments of the function for an input. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** The input in the arguments of a call; weak models write it under another name, or alone. */
export function customInput(text: string): string {
  const values = inputOf(text);
  const { input, _raw } = values;
  if (typeof input === 'string') return input;
  if (typeof _raw === 'string') return _raw;
  const [only, ...others] = Object.values(values);
  return typeof only === 'string' && others.length === 0 ? only : text;
}
