/**
 * Tokens as they are counted by o200k_base, the public vocabulary of today's models that chat completions
 * style comes from (package gpt-tokenizer). It takes 0.2 s and 30 MB to load, so that waits for the first chat.
 */

/** Text that is never cut: a token, or the few that make one character together. */
export type Piece = { text: string; tokens: number };

/** A run without a break is merged in quadratic time, so that longer ones are cut. */
const run_length_max = 128;

/** About 20 ms of counting; then others have their turn. */
const slice_length = 16_384;

/** What is beyond it counts as what is before: a million letters without a space take seconds. */
const counted_length_max = 262_144;

/** `<|endoftext|>` and the like are text here. */
const as_text = { disallowedSpecial: new Set<string>() };

type Tokenizer = {
  countTokens(text: string, options: typeof as_text): number;
  encode(text: string, options: typeof as_text): number[];
  decodeGenerator(tokens: number[]): Iterable<string>;
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

/** A text in pieces, none of which is cut within a character. */
export async function piecesOf(text: string): Promise<Piece[]> {
  const tokenizer = await load();
  return slicesOf(text).flatMap((slice) => wholeCharacters(tokenizer, tokenizer.encode(slice, as_text)));
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

/** No character has more; what is none would go on for ever. */
const character_tokens_max = 8;

/** Tokens may end within a character: those are one piece with the next. */
function wholeCharacters(tokenizer: Tokenizer, tokens: readonly number[]): Piece[] {
  const pieces: Piece[] = [];
  let open: number[] = [];
  for (const token of tokens) {
    open.push(token);
    const text = [...tokenizer.decodeGenerator(open)].join('');
    if ((text === '' || text.includes('\ufffd')) && open.length < character_tokens_max) continue;
    pieces.push({ text, tokens: open.length });
    open = [];
  }
  if (open.length > 0) pieces.push({ text: [...tokenizer.decodeGenerator(open)].join(''), tokens: open.length });
  return pieces;
}
