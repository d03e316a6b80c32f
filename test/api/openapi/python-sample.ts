import { assert } from '../../../src/lib/assert.ts';

/** The call of `requests` in a program, with the bytes of `open` as text. */
export type PythonCall = { method: string; url: string; headers: [string, string][]; body: unknown };

type Opened = { opened: string };

const isOpened = (value: unknown): value is Opened => typeof value === 'object' && value !== null && 'opened' in value;

/**
 * Reads the one call of `requests` in a program whose arguments are literals, files and the environment. Throws for
 * everything else: a sample has nothing else.
 */
export function readPython(source: string, environment: Record<string, string>): PythonCall {
  const [, imports = '', method = '', rest = ''] =
    /^((?:import os\n\n)?)import requests\n\nresponse = requests\.([a-z]+)\(([^]*)$/.exec(source) ?? [];
  assert(rest !== '', `the program calls requests: ${source}`);
  const reader = new Reader(rest, imports === '' ? {} : environment);
  const { url, named } = reader.arguments();
  assert(/^\n(print\(response\.|with open\("output)/.test(reader.rest()), `the program shows the answer: ${source}`);
  const { headers = {}, ...bodies } = named;
  return {
    method: method.toUpperCase(),
    url,
    headers: Object.entries(headers ?? {}).map(([name, value]) => [name, `${value}`]),
    body: bodyOf(bodies),
  };
}

function bodyOf({ json, data, files }: Record<string, unknown>): unknown {
  if (json !== undefined) return json;
  if (isOpened(data)) return `bytes of ${data.opened}`;
  if (data === undefined && files === undefined) return undefined;
  const opened = Object.entries(files ?? {}).map(([name, value]) => {
    assert(isOpened(value), 'a file of a form is opened');
    return [name, `bytes of ${value.opened}`];
  });
  return Object.fromEntries([...Object.entries(data ?? {}), ...opened]);
}

class Reader {
  #text: string;
  readonly #environment: Record<string, string>;

  constructor(text: string, environment: Record<string, string>) {
    this.#text = text;
    this.#environment = environment;
  }

  rest(): string {
    return this.#text;
  }

  arguments(): { url: string; named: Record<string, unknown> } {
    const url = this.#value();
    assert(typeof url === 'string', 'the first argument is the address');
    const named: Record<string, unknown> = {};
    while (this.#takes(',') && !this.#sees(')')) {
      const name = this.#match(/^(\w+)=/);
      named[name] = this.#value();
    }
    this.#match(/^(\))/);
    return { url, named };
  }

  #value(): unknown {
    if (this.#takes('{')) return Object.fromEntries(this.#members('}', () => this.#member()));
    if (this.#takes('[')) return this.#members(']', () => this.#value());
    if (this.#sees('open(')) return { opened: this.#match(/^open\("([^"]+)", "rb"\)/) };
    if (this.#sees('f"')) {
      const name = this.#match(/^f"Bearer \{os\.environ\['(\w+)'\]\}"/);
      const value = this.#environment[name];
      assert(value !== undefined, `the program imports os and there is ${name}`);
      return `Bearer ${value}`;
    }
    const word = this.#match(/^("(?:[^"\\]|\\.)*"|-?\d[\d.e+-]*|True|False|None)/);
    const words: Record<string, unknown> = { True: true, False: false, None: null };
    return word in words ? words[word] : JSON.parse(word);
  }

  #member(): [string, unknown] {
    const key = this.#value();
    assert(typeof key === 'string' && this.#takes(':'), 'a member has a key');
    return [key, this.#value()];
  }

  #members<Item>(end: string, read: () => Item): Item[] {
    const items: Item[] = [];
    while (!this.#takes(end)) {
      items.push(read());
      if (!this.#takes(',')) assert(this.#sees(end), `a list ends with ${end}: ${this.#text.slice(0, 60)}`);
    }
    return items;
  }

  #sees(text: string): boolean {
    this.#text = this.#text.replace(/^\s+/, '');
    return this.#text.startsWith(text);
  }

  #takes(text: string): boolean {
    if (!this.#sees(text)) return false;
    this.#text = this.#text.slice(text.length);
    return true;
  }

  #match(pattern: RegExp): string {
    this.#sees('');
    const [whole, part] = pattern.exec(this.#text) ?? [];
    assert(whole !== undefined && part !== undefined, `${pattern} is next: ${this.#text.slice(0, 60)}`);
    this.#text = this.#text.slice(whole.length);
    return part;
  }
}
