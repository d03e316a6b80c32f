import { expect, it } from 'vitest';
import { amountSent, optionalAmount } from '../../web/src/ui/amount.ts';

it.each([
  ['25', '25'],
  [' 12.50 ', '12.50'],
  ['12,50', '12.50'],
  ['0,005', '0.005'],
  ['1,2345', '1.2345'],
  // A thousand, or one: the service refuses what has a comma.
  ['1,000', '1,000'],
  ['10,000', '10,000'],
  ['1,000.00', '1.000.00'],
  ['1,000,000', '1.000,000'],
])('the amount %j is sent as %j', (typed, sent) => {
  expect(amountSent(typed)).toBe(sent);
  expect(optionalAmount(typed)).toBe(sent);
});

it('an empty text is not an amount', () => {
  expect(optionalAmount(' ')).toBeNull();
});
