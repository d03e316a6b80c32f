/**
 * Tokens as they are counted by o200k_base, the public vocabulary of today's models that chat completions
 * style comes from (package gpt-tokenizer). It takes 0.2 s and 30 MB to load, so that waits for the first chat.
 */

/** A word of a text and how many tokens it is. */
export type Piece = { text: string; tokens: number };

/** A run without a break is merged in quadratic time, so that longer ones are cut. */
const run_length_max = 128;

/** About 20 ms of counting; then others have their turn. */
const slice_length = 16_384;

/** What is beyond it counts as what is before: a million letters without a space take seconds. */
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

/** How many tokens a text is. Exact up to 262,144 characters but for words of more than 128 letters. */
export async function countTokens(text: string): Promise<number> {
  if (text === '') return 0;
  const tokenizer = await load();
  const counted = text.slice(0, counted_length_max);
  let tokens = 0;
  for (const slice of slicesOf(counted)) {
    tokens += tokenizer.countTokens(slice, as_text);
    if (text.length > slice_length) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return Math.ceil((tokens * text.length) / counted.length);
}

/** The text that these tokens are; undefined if one of them is none. */
export async function textOfTokens(tokens: readonly number[]): Promise<string | undefined> {
  if (tokens.some((token) => token > token_max)) return undefined;
  const tokenizer = await load();
  return tokenizer.decode(tokens);
}

/** A text in words with the space before them, where tokens begin: their tokens add up to those of the text. */
export async function piecesOf(text: string): Promise<Piece[]> {
  const tokenizer = await load();
  const words = slicesOf(text).flatMap((slice) => slice.split(/(?<=\S)(?= )/));
  return words.map((word) => ({ text: word, tokens: tokenizer.countTokens(word, as_text) }));
}

/** The longest beginning of a word that has no more than `tokens_max` tokens. */
export async function beginningOf(word: string, tokens_max: number): Promise<Piece> {
  const tokenizer = await load();
  const characters = [...word];
  for (let length = characters.length; length > 0; length--) {
    const text = characters.slice(0, length).join('');
    const tokens = tokenizer.countTokens(text, as_text);
    if (tokens <= tokens_max) return { text, tokens };
  }
  return { text: '', tokens: 0 };
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
