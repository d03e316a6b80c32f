import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  balanceView,
  costView,
  divideDown,
  divideUp,
  estimateView,
  exact,
  money_max,
  parseMoney,
  plus,
  rational,
  roundHalfUp,
  times,
  toMoney,
  zero,
  type Rational,
} from '../../src/money/money.ts';

const anyMoney = fc.bigInt({ min: -money_max, max: money_max });
const positiveMoney = fc.bigInt({ min: 0n, max: money_max });
const denominator = fc.bigInt({ min: 1n, max: 10n ** 18n });
const numerator = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });
const decimal = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.stringMatching(/^\d{0,12}$/))
  .map(([whole, fraction]) => (fraction === '' ? `${whole}` : `${whole}.${fraction}`));

/** Two digits as hundredths. */
const cents = (amount: string): bigint => BigInt(amount.replace('.', ''));

describe('parseMoney', () => {
  it.each([
    ['25', 25_000_000n],
    ['25.00', 25_000_000n],
    ['0.000001', 1n],
    ['-0.000001', -1n],
    ['-0', 0n],
    ['007.5', 7_500_000n],
    ['1000000000', money_max],
    ['-1000000000.000000', -money_max],
  ])('reads %s', (text, value) => {
    expect(parseMoney(text)).toBe(value);
  });

  it.each([
    '',
    '.',
    '1.',
    '.5',
    '+1',
    ' 1',
    '1 ',
    '1\n',
    '1,5',
    '1e9',
    '0x1',
    '1_000',
    '--1',
    '1.0000001',
    'NaN',
    'Infinity',
    '١',
    '1000000000.000001',
    '9'.repeat(400),
  ])('refuses %j', (text) => {
    expect(parseMoney(text)).toBeUndefined();
  });

  it('reads what exact() writes', () => {
    fc.assert(
      fc.property(anyMoney, (value) => {
        expect(parseMoney(exact(value))).toBe(value);
      }),
    );
  });

  it('reads an amount that exact() writes back in the same form', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^-?(0|[1-9]\d{0,8})\.\d{6}$/), (text) => {
        const value = parseMoney(text) ?? 0n;
        expect(exact(value)).toBe(value === 0n ? '0.000000' : text);
      }),
    );
  });
});

describe('amounts of two digits', () => {
  it.each([
    // exact            cost      estimate  balance
    ['0.000000', '0.00', '0.00', '0.00'],
    ['0.000001', '0.01', '0.01', '0.00'],
    ['0.004999', '0.01', '0.01', '0.00'],
    ['0.005000', '0.01', '0.01', '0.00'],
    ['0.009999', '0.01', '0.01', '0.00'],
    ['0.010000', '0.01', '0.01', '0.01'],
    ['0.012500', '0.01', '0.02', '0.01'],
    ['0.014999', '0.01', '0.02', '0.01'],
    ['0.015000', '0.02', '0.02', '0.01'],
    ['0.994999', '0.99', '1.00', '0.99'],
    ['0.995000', '1.00', '1.00', '0.99'],
    ['12.345678', '12.35', '12.35', '12.34'],
    ['1000000000.000000', '1000000000.00', '1000000000.00', '1000000000.00'],
  ])('of %s show cost %s, estimate %s and balance %s', (text, cost, estimate, balance) => {
    const value = parseMoney(text) ?? -1n;
    expect(costView(value, 'USD')).toEqual({ amount: cost, currency: 'USD', exact: text });
    expect(estimateView(value, 'PLN')).toEqual({ amount: estimate, currency: 'PLN', exact: text });
    expect(balanceView(value, 'USD')).toEqual({ amount: balance, currency: 'USD', exact: text });
  });

  it('are rounded down, away from zero, for a negative balance', () => {
    expect(balanceView(-1n, 'USD')).toEqual({ amount: '-0.01', currency: 'USD', exact: '-0.000001' });
    expect(balanceView(-10_000n, 'USD').amount).toBe('-0.01');
    expect(balanceView(-1_234_567n, 'USD').amount).toBe('-1.24');
  });

  it('are at most half a cent off for a cost, and 0.00 only for zero', () => {
    fc.assert(
      fc.property(fc.oneof(positiveMoney, fc.bigInt({ min: 0n, max: 30_000n })), (value) => {
        const shown = cents(costView(value, 'USD').amount);
        expect(shown === 0n).toBe(value === 0n);
        if (value < 10_000n) return;
        const off = shown * 10_000n - value;
        expect(off > -5000n && off <= 5000n).toBe(true);
      }),
    );
  });

  it('are at least the hold for an estimate and at most the balance for a balance', () => {
    fc.assert(
      fc.property(positiveMoney, (value) => {
        const above = cents(estimateView(value, 'USD').amount) * 10_000n - value;
        const below = value - cents(balanceView(value, 'USD').amount) * 10_000n;
        expect(above >= 0n && above < 10_000n).toBe(true);
        expect(below >= 0n && below < 10_000n).toBe(true);
      }),
    );
  });
});

describe('rounding', () => {
  it.each([
    // n, d, half up, up, down
    [7n, 2n, 4n, 4n, 3n],
    [-7n, 2n, -4n, -3n, -4n],
    [1n, 3n, 0n, 1n, 0n],
    [2n, 3n, 1n, 1n, 0n],
    [-1n, 3n, 0n, 0n, -1n],
    [6n, 3n, 2n, 2n, 2n],
    [-6n, 3n, -2n, -2n, -2n],
    [0n, 5n, 0n, 0n, 0n],
    [5n, 1n, 5n, 5n, 5n],
  ])('divides %d / %d half up, up and down', (n, d, half_up, up, down) => {
    expect([roundHalfUp(n, d), divideUp(n, d), divideDown(n, d)]).toEqual([half_up, up, down]);
  });

  it('is off by less than one, and half up by at most a half', () => {
    fc.assert(
      fc.property(numerator, denominator, (n, d) => {
        const up = divideUp(n, d) * d - n;
        const down = n - divideDown(n, d) * d;
        const off = 2n * (roundHalfUp(n, d) * d - n);
        expect(up >= 0n && up < d).toBe(true);
        expect(down >= 0n && down < d).toBe(true);
        expect(n < 0n ? off >= -d && off < d : off > -d && off <= d).toBe(true);
      }),
    );
  });
});

describe('a rational', () => {
  it.each([
    ['0', 0n, 1n],
    ['3.65', 365n, 100n],
    ['0.0000001', 1n, 10_000_000n],
    ['999999999999999999.999999999999999999', 10n ** 36n - 1n, 10n ** 18n],
  ])('is read from %s', (text, n, d) => {
    expect(rational(text)).toEqual({ numerator: n, denominator: d });
  });

  it.each(['', '-1', '+1', '1e3', '1.', '.1', 'NaN', ' 1', '1\n', '0.1234567890123456789', '1'.repeat(19)])(
    'is not read from %j',
    (text) => {
      expect(rational(text)).toBeUndefined();
    },
  );

  it('is exact for sums and products of decimals', () => {
    const value = (text: string): Rational => rational(text) ?? zero;
    const same = (a: Rational, b: Rational) => a.numerator * b.denominator === b.numerator * a.denominator;
    expect(same(plus(value('0.1'), value('0.2')), value('0.3'))).toBe(true);
    fc.assert(
      fc.property(decimal, decimal, decimal, (a, b, c) => {
        const [x, y, z] = [value(a), value(b), value(c)];
        expect(same(times(plus(x, y), z), plus(times(x, z), times(y, z)))).toBe(true);
        expect(same(plus(x, zero), x)).toBe(true);
      }),
    );
  });
});

describe('toMoney', () => {
  it.each([
    ['0.0000004', 0n, 1n],
    ['0.0000005', 1n, 1n],
    ['0.000001', 1n, 1n],
    ['0.0000011', 1n, 2n],
    ['0', 0n, 0n],
    ['2.5', 2_500_000n, 2_500_000n],
  ])('turns %s into %d charged and %d held', (text, charged, held) => {
    const units = rational(text) ?? zero;
    expect(toMoney(units, 'half_up')).toBe(charged);
    expect(toMoney(units, 'up')).toBe(held);
  });

  it('rounds once: 1,234 tokens at 2.50 per million in zloty', () => {
    const tokens = times(
      { numerator: 1234n, denominator: 1_000_000n },
      times(rational('2.50') ?? zero, rational('3.65') ?? zero),
    );
    expect(exact(toMoney(tokens, 'half_up'))).toBe('0.011260'); // 0.01126025
    expect(exact(toMoney(tokens, 'up'))).toBe('0.011261');
  });

  it('never charges more than it held for the same units', () => {
    fc.assert(
      fc.property(decimal, decimal, (units, price) => {
        const product = times(rational(units) ?? zero, rational(price) ?? zero);
        const held = toMoney(product, 'up');
        const charged = toMoney(product, 'half_up');
        expect(charged <= held && held - charged <= 1n).toBe(true);
      }),
    );
  });

  it('reads an amount of six digits as parseMoney does', () => {
    fc.assert(
      fc.property(positiveMoney, (value) => {
        const units = rational(exact(value)) ?? zero;
        expect(toMoney(units, 'half_up')).toBe(value);
        expect(toMoney(units, 'up')).toBe(value);
      }),
    );
  });
});
