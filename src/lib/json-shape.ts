/** JSON that takes longer to read than anybody may make others wait. `what` is what its text does, as in "is nested deeper". */
export class JsonTooComplex extends Error {
  override name = 'JsonTooComplex';
  readonly what: string;

  constructor(what: string) {
    super(`The JSON ${what}.`);
    this.what = what;
  }
}

/** Deeper JSON is parsed well, but what comes after that (validators, JSON.stringify) overflows the stack at 5,000. */
export const depth_max = 64;

/**
 * Everything between commas, brackets and braces counts as a value: ten million empty arrays fit in
 * 20 MB of text and take half a gigabyte when parsed; a million take about 50 MB.
 */
const values_max = 1_000_000;

/**
 * Members cost more than values, as each name that was not there before is kept: 950,000 of them took 3.8 s. A
 * conversation of two million tokens has about 50,000, in objects of fewer than ten.
 */
const members_max = 100_000;
const members_per_object_max = 10_000;

/** Names of members among them. A short string that was not there before costs ten times a number: 900,000 took 0.3 s. */
const strings_max = 300_000;

/** The longest double has 767 digits that count. The time for a number grows faster than its length. */
const number_length_max = 1_000;

/** Longer numbers than anybody means are few: 19 MB of them took 0.2 s. */
const ordinary_number_length = 40;
const long_numbers_length_max = 1_000_000;

/** Of `false`. */
const word_length_max = 5;

const space = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const open_bracket = 0x5b;
const close_bracket = 0x5d;
const open_brace = 0x7b;
const close_brace = 0x7d;

/**
 * Counts what JSON texts are made of before they are parsed, all of them together. Each `add` throws JsonTooComplex
 * where it is too much. Texts need not be valid.
 */
export class JsonShape {
  readonly #refuses_deep: boolean;
  #depth = 0;
  #values = 0;
  #members = 0;
  #strings = 0;
  #long_numbers_length = 0;
  /** The number of members of the object at each depth. */
  readonly #members_at = new Uint32Array(depth_max + 1);

  /** `takes_deep`: whoever reads the texts looks at their depth. */
  constructor(options: { takes_deep?: boolean } = {}) {
    this.#refuses_deep = options.takes_deep !== true;
  }

  add(bytes: Buffer): void {
    this.#depth = 0;
    this.#addValue();
    let letters = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte <= space) continue;
      letters = byte > close_bracket && byte < open_brace ? letters + 1 : 0;
      if (letters > word_length_max) return; // no parser reads on after that; 64 MB of them took 0.3 s
      if (byte === quote) {
        this.#addString();
        at = endOfString(bytes, at);
      } else if (isDigit(byte)) at = this.#takeNumber(bytes, at);
      else this.#take(byte);
    }
  }

  #take(byte: number): void {
    if (byte === comma) {
      this.#addValue();
    } else if (byte === colon) {
      this.#addMember();
    } else if (byte === open_bracket || byte === open_brace) {
      this.#addValue();
      this.#depth += 1;
      if (this.#depth > depth_max && this.#refuses_deep)
        throw new JsonTooComplex(`is nested deeper than ${depth_max} levels`);
      if (this.#depth <= depth_max) this.#members_at[this.#depth] = 0;
    } else if (byte === close_bracket || byte === close_brace) {
      this.#depth = Math.max(0, this.#depth - 1); // more of them than were opened: the parser will say so
    }
  }

  #addValue(): void {
    this.#values += 1;
    if (this.#values > values_max) throw new JsonTooComplex(`holds more than ${values_max} values`);
  }

  #addMember(): void {
    this.#members += 1;
    const own = this.#depth > depth_max ? 0 : (this.#members_at[this.#depth] ?? 0) + 1;
    if (own > 0) this.#members_at[this.#depth] = own;
    if (own > members_per_object_max)
      throw new JsonTooComplex(`holds an object with more than ${members_per_object_max} members`);
    if (this.#members > members_max)
      throw new JsonTooComplex(`holds more than ${members_max} members in all its objects`);
  }

  #addString(): void {
    this.#strings += 1;
    if (this.#strings > strings_max) throw new JsonTooComplex(`holds more than ${strings_max} strings`);
  }

  /** Answers the place of the last character of the number that begins at `start`. */
  #takeNumber(bytes: Buffer, start: number): number {
    let end = start;
    while (isInNumber(bytes[end + 1] ?? 0)) end += 1;
    const length = end - start + 1;
    if (length <= ordinary_number_length) return end;
    if (length > number_length_max)
      throw new JsonTooComplex(`holds a number of more than ${number_length_max} characters`);
    this.#long_numbers_length += length;
    if (this.#long_numbers_length <= long_numbers_length_max) return end;
    throw new JsonTooComplex(
      `holds numbers of more than ${ordinary_number_length} characters that have more than ${long_numbers_length_max} together`,
    );
  }
}

/** Returns the end of the string that opens at `start`: the next quote that no \ escapes, or the end of the text. */
export function endOfString(bytes: Buffer, start: number): number {
  const first = bytes.indexOf(quote, start + 1);
  if (first === -1) return bytes.length;
  if (bytes[first - 1] !== backslash) return first;
  // One by one: to look for each of millions of quotes that are escaped took 50 ns each.
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === backslash) at += 1;
    else if (byte === quote) return at;
  }
  return bytes.length;
}

/** Texts that are shorter have not much in them, whatever it is. */
export const short_json_length = 500_000;

/** Throws JsonTooComplex for a text that takes long to read, however deep it is. */
export function checkShape(text: string): void {
  if (text.length > short_json_length) new JsonShape({ takes_deep: true }).add(Buffer.from(text));
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isInNumber(byte: number): boolean {
  return isDigit(byte) || byte === 0x2e || byte === 0x65 || byte === 0x45 || byte === 0x2b || byte === 0x2d; // .eE+-
}
