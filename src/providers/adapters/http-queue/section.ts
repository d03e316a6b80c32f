import type { OptionProblem } from '../../../catalog/check-settings.ts';
import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import type { Path } from '../../../catalog/problem.ts';
import { parseDuration } from '../../../lib/duration.ts';
import { readPlace, type AnswerPlace } from './answer-place.ts';
import { unknownInBody, unknownWords } from './template.ts';

/** Reads a part of the options member by member, and notes what is wrong with it; what is wrong is left out. */
export class Section {
  readonly #value: JsonObject;
  readonly #at: Path;
  readonly #problems: OptionProblem[];

  /** `names`: all the members that there are. */
  constructor(value: JsonObject, at: Path, problems: OptionProblem[], names: readonly string[]) {
    this.#value = value;
    this.#at = at;
    this.#problems = problems;
    for (const field of Object.keys(value)) {
      if (!names.includes(field))
        problems.push({ field, message: 'is unknown and has no effect', known_names: names, at });
    }
  }

  note(field: string, message: string): undefined {
    this.#problems.push({ field, message, at: this.#at });
  }

  has(field: string): boolean {
    return this.#value[field] !== undefined;
  }

  section(field: string, names: readonly string[]): Section | undefined {
    const value = this.#value[field];
    if (value === undefined) return undefined;
    if (!isObject(value)) return this.note(field, 'must be a mapping');
    return new Section(value, [...this.#at, field], this.#problems, names);
  }

  text(field: string): string | undefined {
    const value = this.#value[field];
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    return this.note(field, 'must be a text');
  }

  choice<Choice extends string>(field: string, choices: readonly Choice[]): Choice | undefined {
    const value = this.#value[field];
    const match = choices.find((choice) => choice === value);
    if (value === undefined || match !== undefined) return match;
    return this.note(field, `must be one of: ${choices.join(', ')}`);
  }

  duration(field: string): number | undefined {
    const value = this.#value[field];
    if (value === undefined) return undefined;
    const duration_ms = typeof value === 'string' ? parseDuration(value) : undefined;
    return duration_ms ?? this.note(field, 'must be a duration such as 500ms, 10s or 2m');
  }

  count(field: string, most: number): number | undefined {
    const value = this.#value[field];
    const is_right = typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most;
    if (value === undefined || is_right) return is_right ? value : undefined;
    return this.note(field, `must be a whole number from 1 to ${most}`);
  }

  flag(field: string): boolean {
    const value = this.#value[field] ?? false;
    if (typeof value !== 'boolean') this.note(field, 'must be true or false');
    return value === true;
  }

  /** Reads the option as a position in a response. */
  path(field: string, options: { required: boolean } = { required: false }): AnswerPlace | undefined {
    const value = this.#value[field];
    if (value === undefined)
      return options.required ? this.note(field, 'is required: a path such as $.data.id') : undefined;
    const place = readPlace(value);
    return place ?? this.note(field, 'must be a path such as $.data.id, $.images[0].url or $.outputs[*]');
  }

  /** Paths by name. */
  paths<Name extends string>(field: string, names: readonly Name[]): { [name in Name]?: AnswerPlace } {
    const section = this.section(field, names);
    const paths: { [name in Name]?: AnswerPlace } = {};
    for (const name of names) {
      const path = section?.path(name);
      if (path !== undefined) paths[name] = path;
    }
    return paths;
  }

  /** Paths by names of the operator's choice. */
  namedPaths(field: string): { [name: string]: AnswerPlace } {
    const value = this.#value[field];
    const names = isObject(value) ? Object.keys(value) : [];
    const wrong = names.find((name) => !/^[A-Za-z0-9_]+$/.test(name));
    if (wrong !== undefined) this.note(field, `has ${wrong}: names are letters, digits and underscores`);
    const section = this.section(field, names);
    const paths = names.flatMap((name): [string, AnswerPlace][] => {
      const place = section?.path(name);
      return place ? [[name, place]] : [];
    });
    return Object.fromEntries(paths);
  }

  /** A list of words or codes, in small letters. */
  words(field: string, options: { required?: boolean; may_be_empty?: boolean } = {}): string[] {
    const value = this.#value[field];
    if (value === undefined) {
      if (options.required) this.note(field, 'is required: a list of words');
      return [];
    }
    const list: Json[] = [value].flat();
    const is_right =
      (list.length > 0 || options.may_be_empty === true) &&
      list.every((word) => ['string', 'number', 'boolean'].includes(typeof word) && word !== '');
    if (is_right) return list.map((word) => String(word).toLowerCase());
    this.note(field, 'must be a list of words or numbers');
    return [];
  }

  /** A text in which words are filled in. */
  template(field: string, words: readonly string[]): string | undefined {
    const text = this.text(field);
    return text !== undefined && this.#knows(field, unknownWords(text, words), words) ? text : undefined;
  }

  /** The same, below the path of the provider's `base_url`. */
  place(field: string, words: readonly string[]): string {
    if (!this.has(field)) this.note(field, 'is required: a path such as /predictions/$id');
    const text = this.template(field, words);
    if (text === undefined) return '/';
    if (/^\/[^?#\s]*$/.test(text)) return text;
    this.note(field, 'must begin with a slash, without ? and #: it continues the base_url of the provider');
    return '/';
  }

  /** Texts by name. */
  templates(field: string, words: readonly string[]): Record<string, string> {
    const value = this.#value[field];
    if (value === undefined) return {};
    if (!isObject(value)) {
      this.note(field, 'must be a mapping');
      return {};
    }
    const section = new Section(value, [...this.#at, field], this.#problems, Object.keys(value));
    const templates = Object.keys(value).flatMap((name): [string, string][] => {
      const text = section.template(name, words);
      return text === undefined ? [] : [[name, text]];
    });
    return Object.fromEntries(templates);
  }

  body(field: string, words: readonly string[]): Json | undefined {
    const value = this.#value[field];
    if (value === undefined) return undefined;
    if (!isObject(value) && typeof value !== 'string') return this.note(field, 'must be $input, or a mapping');
    return this.#knows(field, unknownInBody(value, words), [...words, 'input']) ? value : undefined;
  }

  #knows(field: string, unknown: string[], allowed: readonly string[]): boolean {
    const [first] = unknown;
    if (first !== undefined) {
      const list = allowed.map((word) => `$${word}`).join(', ');
      this.note(field, `has ${first}, which is none of ${list}; a dollar sign is written $$`);
    }
    return first === undefined;
  }
}
