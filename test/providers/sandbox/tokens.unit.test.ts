import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { beginningOf, countTokens, piecesOf } from '../../../src/providers/sandbox/tokens.ts';

describe('tokens', () => {
  it.each([
    ['', 0],
    ['Hello world', 2],
    ['Hello, world!', 4],
    ['tiktoken is great!', 6],
    ['<|endoftext|>', 7],
    ['お誕生日おめでとう', 8],
  ])('%j has %i', async (text, tokens) => {
    expect(await countTokens(text)).toBe(tokens);
  });

  it('are counted the same in slices as at once', async () => {
    const { countTokens: direct } = await import('gpt-tokenizer/encoding/o200k_base');
    const text = 'The river falls,  over 17 stones and Grüße 😀.\n\n'.repeat(2_000);
    expect(await countTokens(text)).toBe(direct(text));
  });

  it('of a text without a space take no longer than its length', async () => {
    const started = performance.now();
    expect(await countTokens('a'.repeat(1_000_000))).toBeGreaterThan(100_000);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('of a beginning are no more than there is room for', async () => {
    expect(await beginningOf(' unbelievably', 1)).toMatchObject({ tokens: 1 });
    expect(await beginningOf('𐀀', 1)).toEqual({ text: '', tokens: 0 });
    expect(await beginningOf(' the', 5)).toEqual({ text: ' the', tokens: 1 });
  });

  it('of its words are those of a text', async () => {
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
