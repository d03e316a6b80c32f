import { expect, it } from 'vitest';
import { listMargin } from '../../src/catalog/list-margin.ts';
import type { CostRow, PriceRow } from '../../src/catalog/model.ts';

/** Prices beside costs: the margin of the unit with the lowest. */

const settings = {
  base_currency: 'USD',
  currencies: new Map([
    ['USD', '1'],
    ['EUR', '0.5'],
  ]),
};
const price = (amount: string, more: Partial<PriceRow> = {}): PriceRow => ({ unit: 'image', per: 1, amount, ...more });
const cost = (amount: string, more: Partial<CostRow> = {}): CostRow => ({
  unit: 'image',
  per: 1,
  amount,
  currency: 'USD',
  ...more,
});

it.each<[string, PriceRow[], CostRow[], number | undefined]>([
  ['a price above its cost has its share of the price', [price('0.04')], [cost('0.03')], 250],
  ['amounts for different numbers of units are compared exactly', [price('3', { per: 1_000 })], [cost('0.001')], 667],
  ['a price below its cost is a loss', [price('0.02')], [cost('0.05')], -1_500],
  ['a cost in another currency is converted', [price('0.04')], [cost('0.01', { currency: 'EUR' })], 500],
  ['a cost in a currency without a rate is unknown', [price('0.04')], [cost('0.01', { currency: 'CHF' })], undefined],
  ['a cost of another unit is unknown', [price('0.04')], [cost('0.01', { unit: 'second' })], undefined],
  ['no cost is unknown', [price('0.04')], [], undefined],
  ['a cost without a price is a loss of all', [price('0')], [cost('0.01')], -1_000],
  ['what is free on both sides has no margin', [price('0')], [cost('0')], 0],
  [
    'the unit with the lowest margin counts',
    [price('3', { unit: 'input_token' }), price('15', { unit: 'output_token' })],
    [cost('1.5', { unit: 'input_token' }), cost('13.5', { unit: 'output_token' })],
    100,
  ],
  [
    'rows with the same conditions are compared with each other',
    [price('0.08', { when: { quality: 'high' } }), price('0.02')],
    [cost('0.04', { when: { quality: 'high' } }), cost('0.01')],
    500,
  ],
  [
    'a price without conditions is compared with the highest cost of its unit',
    [price('0.05')],
    [cost('0.04', { when: { quality: 'high' } }), cost('0.01', { when: { quality: 'low' } })],
    200,
  ],
])('%s', (_, prices, costs, margin) => {
  expect(listMargin({ price: prices }, { cost: costs }, settings)).toBe(margin);
});
