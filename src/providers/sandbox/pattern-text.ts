/**
 * A text that matches a regular expression, made from the expression itself: it is never run, since it comes
 * from a stranger and could take for ever.
 */

const repeats_max = 1_024;
const length_max = 10_000;

/** Longer expressions are not understood. */
const pattern_length_max = 10_000;

/** Texts for patterns, each made once: a thousand values may have the same pattern of 10 kB. */
export class PatternTexts {
  readonly #texts = new Map<string, string | undefined>();
  /** Characters of patterns that were read. */
  #read_length = 0;

  get read_length(): number {
    return this.#read_length;
  }

  /** A text of at least `length_min` that matches `pattern`; undefined for what this does not understand. */
  textOf(pattern: string, length_min: number): string | undefined {
    if (pattern.length > pattern_length_max) return undefined;
    const name = `${length_min} ${pattern}`;
    if (!this.#texts.has(name)) this.#texts.set(name, this.#make(pattern, length_min));
    return this.#texts.get(name);
  }

  #make(pattern: string, length_min: number): string | undefined {
    try {
      for (let repeats = 1; repeats <= repeats_max; repeats *= 4) {
        this.#read_length += pattern.length;
        const text = new PatternReader(pattern, repeats).read();
        if (text.length >= length_min) return text;
      }
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
    }
    return undefined;
  }
}

class NotUnderstood extends Error {}

const classes: { readonly [letter: string]: string } = { d: '1', w: 'a', s: ' ', D: 'a', W: '-', S: 'a' };
const controls: { readonly [letter: string]: string } = { n: '\n', t: '\t', r: '\r', f: '\f', v: '\v' };

/** Characters for a class that excludes something: the first of them that it allows. */
const ordinary = 'a1A-_ .,:;@/#xyzXYZ09';

/** Reads an expression from left to right and answers what it matches; of alternatives the first. */
class PatternReader {
  readonly #pattern: string;
  readonly #repeats: number;
  #at = 0;

  constructor(pattern: string, repeats: number) {
    this.#pattern = pattern;
    this.#repeats = repeats;
  }

  read(): string {
    const text = this.#alternatives(0);
    if (this.#at < this.#pattern.length) throw new NotUnderstood();
    return text;
  }

  #alternatives(depth: number): string {
    if (depth > 32) throw new NotUnderstood();
    const first = this.#row(depth);
    while (this.#take('|')) this.#row(depth);
    return first;
  }

  #row(depth: number): string {
    let text = '';
    while (this.#at < this.#pattern.length && !'|)'.includes(this.#next())) {
      const one = this.#one(depth);
      const count = this.#count();
      if (text.length + one.length * count > length_max) throw new NotUnderstood();
      text += one.repeat(count);
    }
    return text;
  }

  #one(depth: number): string {
    const sign = this.#next();
    this.#at += 1;
    switch (sign) {
      case '^':
      case '$':
        return '';
      case '.':
        return 'a';
      case '[':
        return this.#set();
      case '(':
        return this.#group(depth);
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        throw new NotUnderstood();
      default:
        return sign;
    }
  }

  #group(depth: number): string {
    if (this.#take('?')) {
      if (this.#take('<')) {
        if ('=!'.includes(this.#next())) throw new NotUnderstood();
        const end = this.#pattern.indexOf('>', this.#at);
        if (end === -1) throw new NotUnderstood();
        this.#at = end + 1;
      } else if (!this.#take(':')) throw new NotUnderstood();
    }
    const text = this.#alternatives(depth + 1);
    if (!this.#take(')')) throw new NotUnderstood();
    return text;
  }

  #escape(): string {
    const letter = this.#next();
    this.#at += 1;
    if (letter === 'b') return '';
    const text = classes[letter] ?? controls[letter];
    if (text !== undefined) return text;
    if (letter === 'p' && this.#pattern.startsWith('{L', this.#at)) {
      this.#at = this.#pattern.indexOf('}', this.#at) + 1;
      return 'a';
    }
    if (letter === '' || /[a-zA-Z0-9]/.test(letter)) throw new NotUnderstood();
    return letter;
  }

  /** One of the characters that a class names, or one that it does not exclude. */
  #set(): string {
    const is_excluding = this.#take('^');
    const members: string[] = [];
    while (this.#next() !== ']') {
      if (this.#at >= this.#pattern.length) throw new NotUnderstood();
      members.push(...this.#members(is_excluding));
    }
    this.#at += 1;
    if (!is_excluding && members[0] !== undefined) return members[0];
    const free = [...ordinary].find((sign) => !members.includes(sign));
    if (!is_excluding || free === undefined) throw new NotUnderstood();
    return free;
  }

  #members(is_excluding: boolean): string[] {
    const low = this.#member();
    const is_range = this.#next() === '-' && this.#pattern[this.#at + 1] !== ']' && low.length === 1;
    if (!is_range) return is_excluding && low in excluded ? [...(excluded[low] ?? '')] : [low];
    this.#at += 1;
    const high = this.#member();
    if (!is_excluding) return [low];
    return [...ordinary].filter((sign) => sign >= low && sign <= high);
  }

  #member(): string {
    const sign = this.#next();
    this.#at += 1;
    return sign === '\\' ? this.#escape() : sign;
  }

  #count(): number {
    let count = 1;
    if (this.#take('*') || this.#take('+')) count = this.#repeats;
    else if (this.#take('{')) {
      const match = /^(\d{1,5})(,?)(\d{0,5})\}/.exec(this.#pattern.slice(this.#at, this.#at + 16));
      if (!match) throw new NotUnderstood();
      const [whole, low = '', comma, high = ''] = match;
      this.#at += whole.length;
      const most = comma === '' ? Number(low) : high === '' ? Infinity : Number(high);
      count = Math.min(Math.max(Number(low), this.#repeats), most);
    } else this.#take('?');
    this.#take('?'); // lazy: the same texts match
    return count;
  }

  #next(): string {
    return this.#pattern[this.#at] ?? '';
  }

  #take(sign: string): boolean {
    if (this.#next() !== sign) return false;
    this.#at += 1;
    return true;
  }
}

/** Samples for excluded classes among the ordinary characters. */
const excluded: { readonly [sample: string]: string } = { '1': '109', a: 'a1A_xyzXYZ09', ' ': ' ' };
