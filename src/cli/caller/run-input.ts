import { stat } from 'node:fs/promises';
import { isRecord } from '../../lib/is-record.ts';
import { CommandError } from '../result.ts';

/** The input of a task from words of a command: `name=text`, `name:=JSON`, `name=@file`. */

/** A value that is there, or a file to upload. */
export type InputValue = { path: string } | { value: unknown };

/** One word of `-i`. */
export type InputWord = { name: string; value: InputValue };

type Property = { types: readonly string[]; options: readonly unknown[]; is_list: boolean };

/** Reads the words against the model's schema. Throws CommandError (usage) that names the field. */
export function readInput(
  prompt: string | undefined,
  words: readonly string[],
  schema: Record<string, unknown>,
): InputWord[] {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const read = words.map((word) => readWord(word, properties));
  if (prompt === undefined) return read;
  const name = promptField(schema, properties);
  if (read.some((each) => each.name === name))
    throw new CommandError(`${name} is given twice: after the model, and by -i.`, 2);
  return [{ name, value: { value: prompt } }, ...read];
}

/** The field that the words after the model are for: `prompt`, else the one text that the model needs. */
function promptField(schema: Record<string, unknown>, properties: Record<string, unknown>): string {
  const names = Object.keys(properties);
  if (names.length === 0 || names.includes('prompt')) return 'prompt';
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  const texts = names.filter(
    (name) => required.includes(name) && propertyOf(properties[name]).types.includes('string'),
  );
  const [only] = texts;
  if (only !== undefined && texts.length === 1) return only;
  throw new CommandError(`This model has no prompt. Use -i name=value; there are: ${names.join(', ')}.`, 2);
}

function readWord(word: string, properties: Record<string, unknown>): InputWord {
  const [, name = '', operator = '', text = ''] = /^([\w.-]{1,100})(:?=)(.*)$/s.exec(word) ?? [];
  if (name === '')
    throw new CommandError(`-i takes name=value, name:=JSON or name=@file, not "${word.slice(0, 80)}".`, 2);
  if (operator === ':=') return { name, value: { value: readJson(name, text) } };
  if (text.startsWith('@@')) return { name, value: { value: text.slice(1) } };
  if (text.startsWith('@')) return { name, value: { path: text.slice(1) } };
  return { name, value: { value: readValue(name, text, propertyOf(properties[name])) } };
}

function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError(`${name} must be JSON after ":=", such as ${name}:=true.`, 2);
  }
}

/** Types of a property, and of the alternatives of it. */
function propertyOf(schema: unknown): Property {
  if (!isRecord(schema)) return { types: [], options: [], is_list: false };
  const alternatives = ['anyOf', 'oneOf', 'allOf'].flatMap((key): unknown[] => {
    const list = schema[key];
    return Array.isArray(list) ? list : [];
  });
  const parts = alternatives.map(propertyOf);
  const types = [schema['type'] ?? []].flat().filter((type) => typeof type === 'string');
  const options: readonly unknown[] = Array.isArray(schema['enum']) ? schema['enum'] : [];
  const all = [...types, ...parts.flatMap((part) => part.types)];
  return {
    types: all,
    options: [...options, ...parts.flatMap((part) => part.options)],
    is_list: all.includes('array'),
  };
}

/** The text where the model takes texts; else the number, the truth or the list that it says. */
function readValue(name: string, text: string, { types, options }: Property): unknown {
  if (types.length === 0 && options.length === 0) return text;
  if (options.includes(text)) return text;
  const json = parsed(text);
  if (json !== undefined && options.includes(json)) return json;
  const type = typeof json;
  if ((types.includes('number') || types.includes('integer')) && type === 'number') return json;
  if (types.includes('boolean') && type === 'boolean') return json;
  if (types.includes('array') && Array.isArray(json)) return json;
  if (types.includes('object') && isRecord(json)) return json;
  if (types.includes('string') || types.length === 0 || types.includes('array')) return text;
  throw new CommandError(`${name} must be ${article(types[0] ?? 'text')}, not "${text.slice(0, 80)}".`, 2);
}

function article(type: string): string {
  const shown = type === 'boolean' ? 'true or false' : type;
  return shown === 'true or false' ? shown : /^[aio]/.test(shown) ? `an ${shown}` : `a ${shown}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Throws CommandError (usage) for a file that cannot be read, before anything is sent or paid. */
export async function checkFiles(words: readonly InputWord[]): Promise<void> {
  for (const { name, value } of words) {
    if (!('path' in value)) continue;
    const facts = await stat(value.path).catch(() => undefined);
    if (!facts?.isFile()) throw new CommandError(`${name}: there is no file "${value.path}".`, 2);
    if (facts.size === 0) throw new CommandError(`${name}: the file "${value.path}" is empty.`, 2);
  }
}

/** Puts values together: a name that comes again, or whose field takes lists, is a list. */
export function inputOf(
  values: readonly { name: string; value: unknown }[],
  schema: Record<string, unknown>,
): Record<string, unknown> {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const input: Record<string, unknown> = {};
  for (const { name, value } of values) {
    const { is_list, types } = propertyOf(properties[name]);
    const before = Object.hasOwn(input, name) ? input[name] : undefined;
    const list: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (before !== undefined) input[name] = [before, list].flat();
    else input[name] = is_list && !types.includes('string') ? list : value;
  }
  return input;
}
