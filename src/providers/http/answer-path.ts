import type { Json } from '../../catalog/model.ts';

/**
 * A position in a response: `$.data.outputs[*].url`, `$.images[0]`, `$["odd name"]`, `$` for all of it. `[*]`
 * is every member of a list or an object; `:json` reads a text that is JSON, as in
 * `$.data.result:json.urls[*]`. Nothing else of JSONPath; nothing is evaluated.
 */
export type AnswerPath = readonly Step[];

type Step = string | number | typeof every | typeof parsed;

const every = Symbol('every member');
const parsed = Symbol('the JSON in a text');

const step_form = /\.([\p{L}_][\p{L}\p{N}_-]*)|\[(\d{1,6})\]|\[(\*)\]|\["([^"\\]*)"\]|(:json)/uy;
const path_length_max = 500;

/** Returns undefined if `text` is no path. */
export function readPath(text: string): AnswerPath | undefined {
  if (!text.startsWith('$') || text.length > path_length_max) return undefined;
  const steps: Step[] = [];
  for (let at = 1; at < text.length; at = step_form.lastIndex) {
    step_form.lastIndex = at;
    const match = step_form.exec(text);
    if (!match) return undefined;
    const [, name, index, star, quoted, json] = match;
    if (json !== undefined) steps.push(parsed);
    else if (star !== undefined) steps.push(every);
    else steps.push(index === undefined ? (name ?? quoted ?? '') : Number(index));
  }
  return steps;
}

/** All that stands there, in its order; a member that is absent or null is none. */
export function allAt(value: Json | undefined, path: AnswerPath): Json[] {
  let values: Json[] = [value ?? null];
  for (const step of path) values = values.flatMap((each) => membersAt(each, step));
  return values.filter((each) => each !== null);
}

/** The first that stands there. */
export function firstAt(value: Json | undefined, path: AnswerPath): Json | undefined {
  return allAt(value, path)[0];
}

function membersAt(value: Json, step: Step): Json[] {
  if (step === parsed) return parse(value);
  if (typeof value !== 'object' || value === null) return [];
  if (step === every) return Object.values(value);
  if (Array.isArray(value)) return typeof step === 'number' ? [value[step] ?? null] : [];
  return typeof step === 'string' && Object.hasOwn(value, step) ? [value[step] ?? null] : [];
}

function parse(value: Json): Json[] {
  if (typeof value !== 'string') return [];
  try {
    return [JSON.parse(value)];
  } catch {
    return []; // a text that is no JSON has nothing in it
  }
}
