import { describe, expect, it } from 'vitest';
import type { CostRow } from '../../src/catalog/model.ts';
import { fitCosts, freeOfCharge, upstreamCharge, type CostFacts } from '../../src/catalog/upstream-cost.ts';

const settings = {
  currencies: new Map([
    ['USD', '1'],
    ['EUR', '0.87'],
    ['PLN', '3.65'],
  ]),
  base_currency: 'USD',
};
const row = (unit: CostRow['unit'], amount: string, more: Partial<CostRow> = {}): CostRow => ({
  unit,
  amount,
  per: 1,
  currency: 'USD',
  ...more,
});
const cost_basis = { rows: [], units: {}, held_units: {}, rate: '1' };
const costOf = (basis: string, cost: bigint, base: bigint) => ({ basis, cost, base, currency: 'USD' });
const unknown = { basis: 'unknown' };

type Case = [what: string, given: Partial<CostFacts>];

const nonsense: Case[] = [
  ['no word and no rows', {}],
  ['a unit that nobody counted', { rows: [row('image', '1'), row('second', '1')], units: { image: '1' } }],
  ['a run of which nobody counted anything', { rows: [row('image', '1')], units: undefined }],
  ['a currency without a rate', { reported: { amount: '1', currency: 'CNY' } }],
  ['a row in a currency without a rate', { rows: [row('request', '1', { currency: 'CNY' })], units: { request: '1' } }],
  ...['', '-1', 'NaN', 'Infinity', '1e3', '0x10', '1,5', ' 1', '1'.repeat(19), '999999999999999999', '{"a":1}'].map(
    (amount): Case => [`told "${amount}"`, { reported: { amount, currency: 'USD' } }],
  ),
  ['more than there is, by the rate', { reported: { amount: '900000000', currency: 'USD' }, rate: '3.65' }],
  ['more than there is, by the rows', { rows: [row('image', '999999999')], units: { image: '999999999' } }],
  ['a rate that is none', { reported: { amount: '1', currency: 'USD' }, rate: 'x' }],
];

describe('the upstream cost', () => {
  it.each([
    ['its own word', { reported: { amount: '0.0375', currency: 'USD' } }, costOf('told', 37_500n, 37_500n)],
    [
      'before the rows',
      { reported: { amount: '2', currency: 'USD' }, rows: [row('image', '1')], units: { image: '9' } },
      costOf('told', 2_000_000n, 2_000_000n),
    ],
    ['in another currency', { reported: { amount: '0.0032', currency: 'EUR' } }, costOf('told', 3_678n, 3_678n)],
    [
      'for an account of a third one',
      { reported: { amount: '0.0032', currency: 'EUR' }, rate: '3.65' },
      costOf('told', 13_425n, 3_678n),
    ],
    ['rounded once, half up', { reported: { amount: '0.0000005', currency: 'USD' } }, costOf('told', 1n, 1n)],
    [
      'by the rows',
      { rows: [row('image', '0.04'), row('request', '0.001')], units: { image: '3', request: '1' } },
      costOf('rows', 121_000n, 121_000n),
    ],
    [
      'rows in several currencies',
      {
        rows: [row('second', '0.1', { currency: 'EUR' }), row('request', '0.5')],
        units: { second: '5.04', request: '1' },
        rate: '0.87',
      },
      costOf('rows', 939_000n, 1_079_310n),
    ],
    [
      'per million',
      { rows: [row('input_token', '2', { per: 1_000_000 })], units: { input_token: '123457' } },
      costOf('rows', 246_914n, 246_914n),
    ],
    [
      'minutes by seconds',
      { rows: [row('minute', '0.06')], units: { second: '90' } },
      costOf('rows', 90_000n, 90_000n),
    ],
    [
      'as held where nothing was measured',
      { rows: [row('character', '0.00001')], units: {}, held_units: { character: '500' } },
      costOf('rows', 5_000n, 5_000n),
    ],
    [
      'as held where hardly more was measured',
      { rows: [row('second', '0.1')], units: { second: '5.04' }, held_units: { second: '5' } },
      costOf('rows', 500_000n, 500_000n),
    ],
    ['nothing, in a currency that has no rate', { reported: { amount: '0', currency: 'CNY' } }, costOf('told', 0n, 0n)],
    [
      'counted here',
      { rows: [row('output_token', '1', { per: 1000 })], units: { output_token: '7' }, is_counted: true },
      costOf('counted', 7_000n, 7_000n),
    ],
    [
      'the step of the whole input',
      {
        rows: [row('input_token', '1', { per: 1000 }), row('input_token', '2', { per: 1000, above_input_tokens: 200 })],
        units: { input_token: '100', cached_input_token: '150' },
      },
      costOf('rows', 500_000n, 500_000n),
    ],
    [
      'cached input that has a row',
      {
        rows: [row('input_token', '1', { per: 1000 }), row('cached_input_token', '0.1', { per: 1000 })],
        units: { input_token: '100', cached_input_token: '150' },
      },
      costOf('rows', 115_000n, 115_000n),
    ],
    [
      'cached input as input without one',
      { rows: [row('input_token', '1', { per: 1000 })], units: { input_token: '100', cached_input_token: '150' } },
      costOf('rows', 250_000n, 250_000n),
    ],
    ['nothing at all, by its rows', { rows: [row('request', '0')], units: undefined }, costOf('free', 0n, 0n)],
  ])('is read from %s', (_what, answer, charge) => {
    expect(upstreamCharge(settings, { ...cost_basis, ...answer })).toEqual(charge);
  });

  it.each(nonsense)('is unknown without breaking anything: %s', (_what, answer) => {
    expect(upstreamCharge(settings, { ...cost_basis, ...answer })).toEqual(unknown);
  });

  it('may be reported as nothing', () => {
    expect(freeOfCharge(settings)).toEqual(costOf('free', 0n, 0n));
  });
});

describe('the cost rows for an input', () => {
  const rows = [
    row('second', '0.5', { when: { resolution: ['1080p', '4k'] } }),
    row('second', '0.1', { when: { resolution: '720p' } }),
    row('second', '0.05'),
    row('request', '0.01'),
  ];

  it.each([
    ['1080p', '0.5'],
    ['720p', '0.1'],
    ['480p', '0.05'],
  ])('are selected by the value %s', (resolution, amount) => {
    expect(fitCosts(rows, () => ({ resolution }))).toEqual([row('second', amount), row('request', '0.01')]);
  });

  it('ignore the input unless a row depends on it', () => {
    const never = () => {
      throw new Error('read');
    };
    expect(fitCosts(rows.slice(2), never)).toEqual(rows.slice(2));
    expect(() => fitCosts(rows, never)).toThrow('read');
  });
});
