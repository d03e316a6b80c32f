import fc from 'fast-check';
import { expect, it } from 'vitest';
import { multiplied, withMargin } from '../../src/catalog/margin.ts';

it.each([
  ['0.10', '1.2', '0.12'],
  ['10', '1.25', '12.5'],
  ['0.000125', '1.3333', '0.0001666625'],
  ['3', '2', '6'],
  ['0', '1.2', '0'],
])('a price with a margin is exact: %s × %s = %s', (amount, margin, expected) => {
  expect(multiplied(amount, margin)).toBe(expected);
});

it('a price with a margin is exact for every price and margin that a file may have', () => {
  const decimal = fc.tuple(fc.nat(9_999), fc.nat(9_999)).map(([a, b]) => `${a}.${String(b).padStart(4, '0')}`);
  fc.assert(
    fc.property(decimal, decimal, (amount, margin) => {
      const scaled = BigInt(amount.replace('.', '')) * BigInt(margin.replace('.', ''));
      const [whole = '', fraction = ''] = multiplied(amount, margin).split('.');
      expect(BigInt(whole + fraction.padEnd(8, '0'))).toBe(scaled);
    }),
  );
});

it('a margin changes the prices of models and not the costs of their upstreams', () => {
  const cost = [{ unit: 'image' as const, amount: '0.04' }];
  const model = {
    id: 'a/b',
    kind: 'image' as const,
    price: [{ unit: 'image' as const, amount: '0.04', when: { size: 'large' } }],
    routes: [{ provider: 'p', cost }],
  };
  const [dearer] = withMargin([model], '1.5');
  expect(dearer?.price).toEqual([{ unit: 'image', amount: '0.06', when: { size: 'large' } }]);
  expect(dearer?.routes[0]?.cost).toBe(cost);
  expect(model.price[0]?.amount).toBe('0.04');
  expect(withMargin([model])).toEqual([model]);
});
