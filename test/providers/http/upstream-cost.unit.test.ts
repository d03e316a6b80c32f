import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  costProblems,
  creditCost,
  decimalOf,
  sumOf,
  tokenCost,
  tokenPriceProblems,
} from '../../../src/providers/http/upstream-cost.ts';

describe('an amount in a response', () => {
  it.each([
    [0.1 + 0.2, '0.3'],
    [1.4, '1.4'],
    [100, '100'],
    [0, '0'],
    [1e-7, '0.0000001'],
    [1e-12, '0'],
    ['0.0325', '0.0325'],
    [' 12 ', '12'],
    ['1e3', undefined],
    ['-1', undefined],
    [-1, undefined],
    [Number.NaN, undefined],
    [1e12, undefined],
    ['', undefined],
    [null, undefined],
    [true, undefined],
    [undefined, undefined],
  ])('%j is read as %j', (value, expected) => {
    expect(decimalOf(value)).toBe(expected);
  });

  it('keeps all of its digits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 12 }), (micros) => {
        const text = decimalOf(micros / 1e6) ?? '';
        expect(Math.round(Number(text) * 1e6)).toBe(micros);
        expect(text).not.toMatch(/\.\d*0$|\.$/);
      }),
    );
  });
});

describe('a sum of costs', () => {
  it('is exact', () => {
    const price = '0.000000000001';
    expect(
      sumOf([
        { count: '3', price: '0.10' },
        { count: '1.5', price },
      ]),
    ).toBe('0.3000000000015');
    expect(sumOf([{ count: '1000000', price: '40', per: 1_000_000n }])).toBe('40');
    expect(sumOf([])).toBe('0');
  });

  it('that no decimal text can hold is unknown', () => {
    expect(sumOf([{ count: '999999999999999999', price: '10' }])).toBeUndefined();
    expect(sumOf([{ count: '0.000000000001', price: '0.000000000001' }])).toBeUndefined();
    expect(sumOf([{ count: 'many', price: '1' }])).toBeUndefined();
  });
});

describe('credits', () => {
  it("cost the route's price in the currency that it names", () => {
    expect(creditCost(12, { credit_price: '0.01' })).toEqual({ amount: '0.12', currency: 'USD' });
    expect(creditCost('0.5', { credit_price: '0.01', cost_currency: 'EUR' })).toEqual({
      amount: '0.005',
      currency: 'EUR',
    });
  });

  it('have an unknown cost without a price or without a count', () => {
    expect([creditCost(12, {}), creditCost('?', { credit_price: '1' })]).toEqual([undefined, undefined]);
    expect(creditCost(1, { credit_price: '1', cost_currency: 7 })).toBeUndefined();
  });
});

describe('tokens', () => {
  const token_prices = { text_input: '5', cached_input: '1.25', image_output: '40' };

  it('cost their price per million', () => {
    const counts = { text_input: 10, cached_input: 4, image_output: 272, audio_output: 0 };
    expect(tokenCost(counts, { token_prices })).toEqual({ amount: '0.010935', currency: 'USD' });
  });

  it('of a kind without a price make the cost unknown, and so does a missing count', () => {
    expect(tokenCost({ text_input: 1, audio_input: 1 }, { token_prices })).toBeUndefined();
    expect(tokenCost({}, { token_prices })).toBeUndefined();
    expect(tokenCost({ text_input: 1 }, {})).toBeUndefined();
  });
});

describe('cost options of a route', () => {
  it('are reported when they are invalid', () => {
    const fields = (problems: { field: string }[]) => problems.map(({ field }) => field);
    expect(fields(costProblems({ credit_price: 0.1, cost_currency: 'usd' }))).toEqual([
      'credit_price',
      'cost_currency',
    ]);
    expect(costProblems({ credit_price: '0.1', cost_currency: 'PLN' })).toEqual([]);
    expect(tokenPriceProblems({ token_prices: { text_input: '5' } })).toEqual([]);
    for (const token_prices of ['5', { words: '5' }, { text_input: 5 }, []])
      expect(fields(tokenPriceProblems({ token_prices }))).toEqual(['token_prices']);
  });
});
