/**
 * Tokens as they are counted by o200k_base, the public vocabulary of today's models that chat completions
 * style comes from (package gpt-tokenizer). It takes 0.2 s and 30 MB to load, so that waits for the first chat.
 */

/** A word of a text and how many tokens it is. */
export type Piece = { text: string; tokens: number };

/** A run without a break is merged in quadratic time, so that longer ones are cut. */
const run_length_max = 128;

/** At most 21 ms of counting (Chinese without a space; English 1 ms); then others have their turn. */
const slice_length = 4_096;

/** Cost of starting to count a text, in characters. */
const text_overhead = 32;

/**
 * Length of a request that is counted; the rest counts in proportion: a million letters without a space take
 * seconds.
 */
const counted_length_max = 262_144;

/** `<|endoftext|>` and the like are text here. */
const as_text = { disallowedSpecial: new Set<string>() };

/** The last one of the vocabulary that stands for text. */
const token_max = 199_997;

type Tokenizer = {
  countTokens(text: string, options: typeof as_text): number;
  decode(tokens: readonly number[]): string;
};

let loading: Promise<Tokenizer> | undefined;

function load(): Promise<Tokenizer> {
  loading ??= import('gpt-tokenizer/encoding/o200k_base');
  return loading;
}

/** Counts the tokens of the texts of one request. Exact up to 262,144 characters but for words of more than 128 letters. */
export class TokenCounter {
  readonly #pace = makeThrottle();
  #counted = { tokens: 0, length: 0 };

  async count(text: string): Promise<number> {
    if (text === '') return 0;
    const tokenizer = await load();
    const near = text.slice(0, counted_length_max - this.#counted.length);
    let tokens = 0;
    for (const slice of slicesOf(near)) {
      await this.#pace(slice.length);
      tokens += tokenizer.countTokens(slice, as_text);
    }
    this.#counted = { tokens: this.#counted.tokens + tokens, length: this.#counted.length + near.length };
    const far_length = text.length - near.length;
    return tokens + Math.ceil((far_length * this.#counted.tokens) / this.#counted.length);
  }
}

/** Counts the tokens of a text with a counter of its own. */
export function countTokens(text: string): Promise<number> {
  return new TokenCounter().count(text);
}

let last_turn: Promise<void> = Promise.resolve();

/** Waits after each slice of work. All requests wait in one line, so that no turn of the event loop has two slices. */
function makeThrottle(): (length: number) => Promise<void> | undefined {
  let done_length = 0;
  return (length) => {
    done_length += length + text_overhead;
    if (done_length <= slice_length + run_length_max + text_overhead) return undefined;
    done_length = length;
    last_turn = last_turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last_turn;
  };
}

/** The text that these tokens are; undefined if one of them is none. */
export async function textOfTokens(tokens: readonly number[]): Promise<string | undefined> {
  if (tokens.some((token) => token > token_max)) return undefined;
  const tokenizer = await load();
  return tokenizer.decode(tokens);
}

/**
 * A text in words with the space before them, where tokens begin: their tokens add up to those of the text. Ends with
 * the word that makes them more than `tokens_max`.
 */
export async function piecesOf(text: string, tokens_max = Infinity): Promise<Piece[]> {
  const tokenizer = await load();
  const throttle = makeThrottle();
  const pieces: Piece[] = [];
  let left = tokens_max;
  for (const slice of slicesOf(text)) {
    await throttle(slice.length);
    for (const word of slice.split(/(?<=\S)(?= )/)) {
      const tokens = tokenizer.countTokens(word, as_text);
      pieces.push({ text: word, tokens });
      left -= tokens;
      if (left < 0) return pieces;
    }
  }
  return pieces;
}

/** A beginning of a word that has no more than `tokens_max` tokens, and more of them with its next character. */
export async function beginningOf(word: string, tokens_max: number): Promise<Piece> {
  const tokenizer = await load();
  const characters = [...word];
  const beginning = (length: number): Piece => {
    const text = characters.slice(0, length).join('');
    return { text, tokens: tokenizer.countTokens(text, as_text) };
  };
  let best: Piece = { text: '', tokens: 0 };
  // Halved, not shortened by one: a word of 4,000 signs without a space would be counted 4,000 times.
  for (let low = 0, high = characters.length; low < high;) {
    const middle = Math.ceil((low + high) / 2);
    const piece = beginning(middle);
    if (piece.tokens <= tokens_max) [best, low] = [piece, middle];
    else high = middle - 1;
  }
  return best;
}

/** Cuts where a token begins anyway, before a space; runs without one after 128 characters. */
function slicesOf(text: string): string[] {
  const slices: string[] = [];
  let start = 0;
  let run = 0;
  let is_space = false;
  for (let at = 0; at < text.length; at++) {
    const was_space = is_space;
    const code = text.charCodeAt(at);
    is_space = code === 0x20 || (code >= 0x09 && code <= 0x0d);
    run = is_space === was_space ? run + 1 : 1;
    const is_pair = code >= 0xdc00 && code <= 0xdfff;
    const is_word = is_space && !was_space;
    if (at === start || is_pair || !((is_word && at - start >= slice_length) || run > run_length_max)) continue;
    slices.push(text.slice(start, at));
    start = at;
    run = 1;
  }
  if (start < text.length) slices.push(text.slice(start));
  return slices;
}
