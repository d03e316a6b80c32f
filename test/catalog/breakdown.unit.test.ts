import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chargeParts, holdParts, type Breakdown } from '../../src/catalog/breakdown.ts';
import type { Unit } from '../../src/catalog/model.ts';
import { holdAmount, measuredCost, type Pricing, type Units } from '../../src/catalog/price.ts';
import { money_max } from '../../src/money/money.ts';

/** A charge taken apart: its rows add up to it, to the last millionth. */

const tokens: Pricing = {
  currency: 'USD',
  rate: '1',
  rows: [
    { unit: 'input_token', amount: '3.00', per: 1_000_000 },
    { unit: 'cached_input_token', amount: '0.30', per: 1_000_000 },
    { unit: 'output_token', amount: '15', per: 1_000_000 },
  ],
};

it('each unit that was used has a row with its quantity, its price and its amount', () => {
  const units = { input_token: '12345', output_token: '321', cached_input_token: '0' };
  expect(chargeParts(tokens, units, {})).toEqual({
    parts: [
      { unit: 'input_token', quantity: '12345', price: { amount: '3.00', per: 1_000_000 }, amount: '0.037035' },
      { unit: 'output_token', quantity: '321', price: { amount: '15', per: 1_000_000 }, amount: '0.004815' },
    ],
    rounding: '0',
    sum: 41_850n,
  });
});

it('cached input without a price of its own is in the row of the input', () => {
  const pricing = { ...tokens, rows: tokens.rows.filter(({ unit }) => unit !== 'cached_input_token') };
  const units = { input_token: '100', cached_input_token: '150', output_token: '0' };
  const { parts, sum } = chargeParts(pricing, units, {});
  expect(parts).toMatchObject([{ unit: 'input_token', quantity: '250', amount: '0.00075' }]);
  expect(sum).toBe(measuredCost(pricing, units, {}));
});

it('a rate turns each amount into the currency of the account, and what is rounded is a row', () => {
  const pricing = { ...tokens, currency: 'PLN', rate: '3.6543' };
  const { parts, rounding, rate, sum } = chargeParts(pricing, { input_token: '1', output_token: '0' }, {});
  expect(rate).toBe('3.6543');
  expect(parts.map(({ amount }) => amount)).toEqual(['0.0000109629']);
  expect([rounding, sum]).toEqual(['0.0000000371', 11n]);
});

it('a measurement slightly above the held quantity is charged as held, and shown', () => {
  const pricing: Pricing = { currency: 'USD', rate: '1', rows: [{ unit: 'second', amount: '0.1', per: 1 }] };
  const { parts, sum } = chargeParts(pricing, { second: '5.08' }, { second: '5' });
  expect(parts).toMatchObject([{ quantity: '5', measured: '5.08', amount: '0.5' }]);
  expect(sum).toBe(500_000n);
});

it('a third of a minute has no end, and the row of what is rounded takes the rest', () => {
  const pricing: Pricing = { currency: 'USD', rate: '1', rows: [{ unit: 'minute', amount: '1', per: 1 }] };
  const shown = chargeParts(pricing, { second: '20' }, { second: '20' });
  expect(shown.parts).toMatchObject([{ quantity: '0.333333333333', amount: '0.333333333333' }]);
  expect([shown.rounding, shown.sum]).toEqual(['-0.000000333333', 333_333n]);
});

const decimal = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.integer({ min: 0, max: 9 }))
  .map(([digits, places]) => {
    const text = digits.toString().padStart(places + 1, '0');
    return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
  });
const unit_names: readonly Unit[] = [
  'request',
  'image',
  'megapixel',
  'second',
  'input_token',
  'output_token',
  'character',
];
const pricings = fc
  .record({
    rate: fc.oneof(
      fc.constant('1'),
      decimal.filter((text) => /[1-9]/.test(text)),
    ),
    rows: fc.uniqueArray(
      fc.record({
        unit: fc.constantFrom(...unit_names),
        amount: decimal,
        per: fc.constantFrom(1, 3, 1_000, 1_000_000),
      }),
      { selector: ({ unit }) => unit, maxLength: 5 },
    ),
  })
  .map((some): Pricing => ({ currency: 'USD', ...some }));
const quantities: fc.Arbitrary<Units> = fc
  .tuple(...unit_names.map(() => fc.option(decimal, { nil: undefined })))
  .map((texts) =>
    Object.fromEntries(unit_names.flatMap((unit, index) => (texts[index] === undefined ? [] : [[unit, texts[index]]]))),
  );

/** In millionths of a millionth. */
function picos(text: string): bigint {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  const value = BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
  return sign === '-' ? -value : value;
}

const added = ({ parts, rounding }: Breakdown) =>
  parts.reduce((sum, { amount }) => sum + picos(amount), 0n) + picos(rounding);

describe('for any prices, quantities and rate', () => {
  it('the rows of a charge add up to the charge, and less than a millionth is rounded', () => {
    fc.assert(
      fc.property(pricings, quantities, quantities, (pricing, units, held) => {
        const shown = chargeParts(pricing, units, held);
        const cost = measuredCost(pricing, units, held);
        fc.pre(shown.sum <= money_max); // nothing costs more than any balance
        expect(shown.sum).toBe(cost);
        expect(added(shown)).toBe(shown.sum * 1_000_000n);
        const rounded = picos(shown.rounding);
        expect(rounded > -1_000_000n && rounded < 1_000_000n).toBe(true);
      }),
    );
  });

  it('the rows of a hold add up to the hold', () => {
    fc.assert(
      fc.property(pricings, quantities, (pricing, held) => {
        const shown = holdParts(pricing, held);
        expect(added(shown)).toBe(shown.sum * 1_000_000n);
        fc.pre(shown.sum <= money_max);
        expect(holdAmount(pricing, held)).toBe(shown.sum);
      }),
    );
  });
});
