import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../../src/catalog/model.ts';
import { openSandboxChat } from '../../../src/providers/sandbox/chat.ts';
import { beginningOf, countTokens, piecesOf } from '../../../src/providers/sandbox/tokens.ts';
import { workedMs } from '../../helpers/work.ts';
import { messages } from '../../../src/styles/messages/codec.ts';
import { prober } from '../../helpers/prober.ts';

/** Counts several requests at once, and how often the event loop went round meanwhile. */
async function countWithTurns(contents: readonly Json[]): Promise<{ tokens: number; turns: number }> {
  const provider = openSandboxChat(prober);
  const counted = { turns: 0, is_done: false };
  const turn = () => {
    counted.turns += 1;
    if (!counted.is_done) setImmediate(turn);
  };
  setImmediate(turn);
  const { signal } = new AbortController();
  const all = await Promise.all(
    contents.map((content) => {
      const body = { model: 'chat', messages: [{ role: 'user', content }] };
      return provider.countTokens?.({ ...call, body }, signal);
    }),
  );
  counted.is_done = true;
  return { tokens: all[0] ?? 0, turns: counted.turns };
}

const call = {
  request_id: 'r',
  style: messages,
  model: 'chat',
  headers: {},
  timeout_ms: { connect: 1_000, first_byte: 1_000, idle: 1_000, start: 1_000, total: 1_000 },
  options: {},
} as const;

describe('the token count', () => {
  it.each([
    ['', 0],
    ['Hello world', 2],
    ['Hello, world!', 4],
    ['tiktoken is great!', 6],
    ['<|endoftext|>', 7],
    ['お誕生日おめでとう', 8],
  ])('of %j is %i', async (text, tokens) => {
    expect(await countTokens(text)).toBe(tokens);
  });

  it('is the same in slices as at once', async () => {
    const { countTokens: direct } = await import('gpt-tokenizer/encoding/o200k_base');
    const text = 'The river falls,  over 17 stones and Grüße 😀.\n\n'.repeat(2_000);
    expect(await countTokens(text)).toBe(direct(text));
  });

  it('of a text without a space takes time in proportion to its length', async () => {
    const started = workedMs();
    expect(await countTokens('a'.repeat(1_000_000))).toBeGreaterThan(100_000);
    expect(workedMs() - started).toBeLessThan(5_000);
  });

  it('of many texts of one request takes turns and a limited time', async () => {
    const words = 'The river falls over stones. '.repeat(560);
    const content = Array.from({ length: 200 }, () => ({ type: 'text', text: words }));
    const { tokens, turns } = await countWithTurns([content]);
    expect(turns).toBeGreaterThan(40);
    expect(turns).toBeLessThan(200); // all of it would take 800
    expect(tokens / (200 * (await countTokens(words)))).toBeCloseTo(1, 2);
  });

  it('of several requests at once takes one slice per turn', async () => {
    const words = 'The river falls over stones. '.repeat(2_000);
    const { turns } = await countWithTurns(Array.from({ length: 10 }, () => words));
    expect(turns).toBeGreaterThan(100);
  });

  it('of a word that is cut is computed a few times only', async () => {
    const started = workedMs();
    const { text, tokens } = await beginningOf('a\tb\n'.repeat(4_000), 3_000);
    expect(text.length).toBeGreaterThan(1_000);
    expect(tokens).toBeLessThanOrEqual(3_000);
    expect(workedMs() - started).toBeLessThan(2_000); // one by one 15 s
  });

  it('of a beginning is at most the available number', async () => {
    expect(await beginningOf(' unbelievably', 1)).toMatchObject({ tokens: 1 });
    expect(await beginningOf('𐀀', 1)).toEqual({ text: '', tokens: 0 });
    expect(await beginningOf(' the', 5)).toEqual({ text: ' the', tokens: 1 });
  });

  it('of its words is that of the text', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({
          unit: fc.oneof(
            fc.string({ unit: 'grapheme', maxLength: 2 }),
            fc.constantFrom(' ', '\n', '.', 'a', '7', '  ', '/'),
          ),
          maxLength: 60,
        }),
        async (text) => {
          const pieces = await piecesOf(text);
          expect(pieces.map((piece) => piece.text).join('')).toBe(text);
          expect(pieces.reduce((sum, piece) => sum + piece.tokens, 0)).toBe(await countTokens(text));
        },
      ),
      { numRuns: 100 },
    );
  });
});
