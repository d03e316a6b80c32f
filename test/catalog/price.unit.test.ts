import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Factor, JsonObject, PriceRow, Unit } from '../../src/catalog/model.ts';
import {
  chargeAmount,
  estimateUnits,
  freezePricing,
  holdAmount,
  pricingOfInput,
  unitsOfOutputs,
  type Pricing,
  type Units,
} from '../../src/catalog/price.ts';
import { ApiError } from '../../src/errors.ts';
import { money_max } from '../../src/money/money.ts';

const settings = {
  currencies: new Map([
    ['USD', '1'],
    ['PLN', '3.65'],
  ]),
};
const row = (unit: Unit, amount: string, when?: PriceRow['when'], per = 1): PriceRow => ({
  unit,
  amount,
  per,
  ...(when && { when }),
});
const usd = (...rows: [Unit, string, number?][]): Pricing => ({
  currency: 'USD',
  rate: '1',
  rows: rows.map(([unit, amount, per = 1]) => ({ unit, amount, per })),
});

describe('freezePricing', () => {
  const price = [
    row('second', '0.18', { resolution: '1080p' }),
    row('request', '0.5', { resolution: ['480p', '720p'], sound: true }),
    row('second', '0.10'),
    row('second', '0.01'),
  ];
  it.each([
    [{ resolution: '1080p' }, ['second 0.18']],
    [{ resolution: '720p', sound: true }, ['request 0.5', 'second 0.10']],
    [{ resolution: '720p', sound: 'true' }, ['second 0.10']],
    [{}, ['second 0.10']],
  ])('of %j freezes the first rows that fit', (input: JsonObject, expected) => {
    const pricing = freezePricing({ price }, input, 'PLN', settings);
    expect(pricing.rows.map(({ unit, amount }) => `${unit} ${amount}`)).toEqual(expected);
    expect(pricing).toMatchObject({ currency: 'PLN', rate: '3.65' });
    expect(JSON.parse(JSON.stringify(pricing))).toEqual(pricing);
  });

  it('ignores inherited fields', () => {
    const inherited = [row('second', '9', { constructor: 'x' }), row('second', '1')];
    expect(freezePricing({ price: inherited }, {}, 'USD', settings).rows[0]?.amount).toBe('1');
  });

  it('refuses a currency that is no longer configured', () => {
    expect(() => freezePricing({ price }, {}, 'EUR', settings)).toThrow('no prices in EUR');
  });
});

const estimate = (unit: Unit, ...factors: Factor[]) => ({ estimate: { [unit]: factors } });

describe('estimateUnits', () => {
  it.each<[string, Unit, Factor[], JsonObject, string]>([
    ['a field', 'second', [{ field: 'duration' }], { duration: 5 }, '5'],
    ['a fraction', 'second', [{ field: 'duration' }], { duration: 0.1 + 0.2 }, '0.30000000000000004'],
    ['minus zero', 'second', [{ field: 'duration' }], { duration: -0 }, '0'],
    ['digits in a text', 'second', [{ field: 'duration' }], { duration: '7.50' }, '7.5'],
    ['a constant', 'second', [{ constant: '3.5' }], {}, '3.5'],
    [
      'a product',
      'megapixel',
      [{ field: 'w' }, { field: 'h' }, { constant: '0.000001' }],
      { w: 1024, h: 768 },
      '0.786432',
    ],
    ['a product of fractions', 'second', [{ field: 'a' }, { field: 'b' }], { a: 1.1, b: 1.1 }, '1.21'],
    ['characters', 'character', [{ field: 'text' }], { text: 'zażółć 👩‍🚀' }, '10'],
    ['a number of characters', 'character', [{ field: 'text' }], { text: 12 }, '12'],
    ['nothing', 'character', [{ field: 'text' }], { text: '' }, '0'],
    ['the largest', 'second', [{ field: 'duration' }], { duration: 999_999_999_999_999 }, '999999999999999'],
  ])('reads %s', (_, unit, factors, input, expected) => {
    expect(estimateUnits(estimate(unit, ...factors), input)).toEqual({ [unit]: expected });
  });

  it.each<[unknown]>([
    [-1],
    [1e308],
    [2 ** 63],
    [1e21],
    [1e-7],
    [NaN],
    [Infinity],
    [-Infinity],
    ['1e9'],
    ['-1'],
    ['0x10'],
    [' 5'],
    [''],
    ['five'],
    [null],
    [true],
    [[]],
    [[5]],
    [{}],
    [undefined],
  ])('refuses %j and names the field', (duration) => {
    const input: JsonObject = {};
    Object.assign(input, { duration });
    expect(() => estimateUnits(estimate('second', { field: 'duration' }), input)).toThrow(
      expect.objectContaining({
        status: 422,
        extras: { param: 'input.duration' },
        message: expect.stringMatching(/^input\.duration /),
      }),
    );
  });

  it('refuses a product that is too large to be exact', () => {
    const model = estimate('second', { field: 'a' }, { field: 'a' });
    expect(() => estimateUnits(model, { a: 1e17 })).toThrow('input.a is too large, or has too many digits');
    expect(() => estimateUnits(model, { a: 0.1234567890123 })).toThrow(ApiError);
  });
});

describe('holdAmount', () => {
  it.each<[string, Pricing, Units, bigint]>([
    ['units × price', usd(['second', '0.02']), { second: '5' }, 100_000n],
    ['× rate, rounded up once', { ...usd(['second', '0.000001']), rate: '3.65' }, { second: '1' }, 4n],
    [
      'several units in one sum',
      usd(['second', '0.0000004'], ['request', '0.0000004']),
      { second: '1', request: '1' },
      1n,
    ],
    ['per many', usd(['character', '0.015', 1000]), { character: '1' }, 15n],
    ['per three', usd(['character', '1', 3]), { character: '1' }, 333_334n],
    ['minutes of seconds', usd(['minute', '1']), { second: '90' }, 1_500_000n],
    ['seconds of minutes', usd(['second', '1']), { minute: '1.5' }, 90_000_000n],
    ['a unit that is not there', usd(['second', '1']), {}, 0n],
    ['no price', usd(), { second: '5' }, 0n],
    ['the most', usd(['second', '1000000000']), { second: '1' }, money_max],
  ])('is exact: %s', (_, pricing, units, expected) => {
    expect(holdAmount(pricing, units)).toBe(expected);
  });

  it('refuses an amount that no balance can hold', () => {
    const pricing = usd(['second', '1']);
    for (const second of ['1000000000.000001', '999999999999999999']) {
      expect(() => holdAmount(pricing, { second })).toThrow(
        expect.objectContaining({ status: 422, extras: { param: 'input' } }),
      );
    }
  });
});

describe('chargeAmount', () => {
  const pricing = usd(['second', '0.1']);
  it.each<[string, Units, Units, bigint]>([
    ['what was measured', { second: '4.999' }, { second: '5' }, 499_900n],
    ['as held when hardly above: 0.25 s', { second: '5.25' }, { second: '5' }, 500_000n],
    ['as held when hardly above: 2 %', { second: '30.6' }, { second: '30' }, 3_000_000n],
    ['never above the hold', { second: '5.251' }, { second: '5' }, 500_000n],
    ['as held when it was not measured', { request: '1' }, { second: '5' }, 500_000n],
    ['nothing', { second: '0' }, { second: '5' }, 0n],
  ])('charges %s', (_, units, held_units, expected) => {
    expect(chargeAmount(pricing, units, held_units)).toBe(expected);
  });

  it('distinguishes tolerance from excess when something else was cheaper than held', () => {
    const both = usd(['second', '0.1'], ['image', '1']);
    const held = { second: '5', image: '2' };
    expect(chargeAmount(both, { second: '5.25', image: '1' }, held)).toBe(1_500_000n);
    expect(chargeAmount(both, { second: '5.251', image: '1' }, held)).toBe(1_525_100n);
    expect(chargeAmount(both, { second: '5.251', image: '2' }, held)).toBe(2_500_000n);
    expect(chargeAmount(both, { second: '30.6', image: '1' }, { second: '30', image: '2' })).toBe(4_000_000n);
    expect(chargeAmount(both, { second: '30.601', image: '1' }, { second: '30', image: '2' })).toBe(4_060_100n);
  });

  it('has no tolerance for counted units', () => {
    const both = usd(['image', '0.01'], ['second', '1']);
    const charged = chargeAmount(both, { image: '101', second: '0' }, { image: '100', second: '1' });
    expect(charged).toBe(1_010_000n);
  });

  it('has cached input as input unless that has a price of its own', () => {
    const held = { input_token: '1000' };
    const units = { input_token: '100', cached_input_token: '150.5' };
    expect(chargeAmount(usd(['input_token', '0.01']), units, held)).toBe(2_505_000n);
    expect(chargeAmount(usd(['input_token', '0.01'], ['cached_input_token', '0.001']), units, held)).toBe(1_150_500n);
    expect(chargeAmount(usd(['image', '1']), { ...units, image: '2' }, { image: '2' })).toBe(2_000_000n);
  });

  it('measures minutes in milliseconds', () => {
    const minutes = usd(['minute', '0.6']);
    expect(chargeAmount(minutes, { request: '1', second: '61.5' }, { minute: '2' })).toBe(615_000n);
    expect(chargeAmount(minutes, { second: '120.25' }, { minute: '2' })).toBe(1_200_000n);
    const both = usd(['minute', '0.6'], ['image', '1']);
    expect(chargeAmount(both, { second: '6.25', image: '0' }, { minute: '0.1', image: '1' })).toBe(60_000n);
    expect(chargeAmount(both, { second: '6.251', image: '0' }, { minute: '0.1', image: '1' })).toBe(62_510n);
  });

  it('rounds half up, once', () => {
    expect(chargeAmount(usd(['second', '0.0000005']), { second: '1' }, { second: '1' })).toBe(1n);
    expect(chargeAmount(usd(['second', '0.0000004']), { second: '1' }, { second: '1' })).toBe(0n);
    const split = usd(['second', '0.0000004'], ['request', '0.0000004']);
    expect(chargeAmount(split, { second: '1', request: '1' }, { second: '1', request: '1' })).toBe(1n);
  });
});

describe('unitsOfOutputs', () => {
  it.each([
    [
      'images',
      [
        { type: 'image', width: 768, height: 768 },
        { type: 'image', width: 1, height: 1 },
      ],
      { request: '1', image: '2', megapixel: '0.589825' },
    ],
    ['a video', [{ type: 'video', width: 854, height: 480, duration: 1.0009999 }], { request: '1', second: '1.001' }],
    [
      'several sounds',
      [
        { type: 'audio', duration: 0.1 },
        { type: 'audio', duration: 0.2 },
      ],
      { request: '1', second: '0.3' },
    ],
    ['no duration', [{ type: 'audio' }], { request: '1' }],
    ['no length', [{ type: 'audio', duration: 0 }], { request: '1', second: '0' }],
    ['nothing', [], { request: '1' }],
  ] as const)('counts %s', (_, outputs, expected) => {
    expect(unitsOfOutputs(outputs)).toEqual(expected);
  });

  it.each([NaN, -1, Infinity, 1e300])('ignores a duration of %s', (duration) => {
    expect(() => unitsOfOutputs([{ type: 'video', duration }])).toThrow('no measure');
  });
});

/** The exact sum in millionths as one fraction of whole numbers, by no code of the service. */
function exactSum(pricing: Pricing, units: Units): { top: bigint; bottom: bigint } {
  const scaled = (text = '0') => {
    const [whole = '', fraction = ''] = text.split('.');
    return BigInt(whole + fraction.padEnd(18, '0'));
  };
  const all_pers = pricing.rows.reduce((product, { per }) => product * BigInt(per), 1n);
  const top = pricing.rows
    .map(
      ({ unit, amount, per }) => scaled(units[unit]) * scaled(amount) * scaled(pricing.rate) * (all_pers / BigInt(per)),
    )
    .reduce((sum, part) => sum + part, 0n);
  return { top, bottom: all_pers * 10n ** 48n }; // three factors of 10¹⁸, less the 10⁶ of the millionths
}

const decimals = (whole_max: number, places_max: number) =>
  fc
    .tuple(fc.nat(whole_max), fc.stringMatching(new RegExp(`^[0-9]{0,${places_max}}$`)))
    .map(([whole, fraction]) => (fraction === '' ? String(whole) : `${whole}.${fraction}`));

const priced_units = ['second', 'image', 'request', 'megapixel', 'character'] as const;

const pricings = fc.record({
  currency: fc.constant('PLN'),
  rate: decimals(9, 12),
  rows: fc.uniqueArray(
    fc.record({
      unit: fc.constantFrom(...priced_units),
      amount: decimals(99, 12),
      per: fc.integer({ min: 1, max: 1_000_000 }),
    }),
    { selector: (each) => each.unit, maxLength: priced_units.length },
  ),
});

const unit_counts = fc.record(Object.fromEntries(priced_units.map((unit) => [unit, decimals(99_999, 18)])));

describe('for any prices and units', () => {
  it('the hold is the exact sum rounded up once', () => {
    fc.assert(
      fc.property(pricings, unit_counts, (pricing, units) => {
        const { top, bottom } = exactSum(pricing, units);
        expect(holdAmount(pricing, units)).toBe((top + bottom - 1n) / bottom);
      }),
    );
  });

  it('the charge for what was held is the exact sum rounded half up once', () => {
    fc.assert(
      fc.property(pricings, unit_counts, (pricing, units) => {
        const { top, bottom } = exactSum(pricing, units);
        expect(chargeAmount(pricing, units, units)).toBe((2n * top + bottom) / (2n * bottom));
      }),
    );
  });

  it('no charge is negative or above the hold, whatever was measured', () => {
    fc.assert(
      fc.property(pricings, unit_counts, unit_counts, (pricing, units, held_units) => {
        const cost = chargeAmount(pricing, units, held_units);
        expect(cost).toBeGreaterThanOrEqual(0n);
        expect(cost).toBeLessThanOrEqual(holdAmount(pricing, held_units));
      }),
    );
  });

  it('a lower measurement never costs more', () => {
    const pairs = fc
      .tuple(fc.nat(1_000_000), fc.nat(1_000_000), fc.nat(1_000_000))
      .map((each) => each.toSorted((a, b) => a - b));
    fc.assert(
      fc.property(pricings, pairs, (pricing, [less = 0, more = 0, held = 0]) => {
        const charged = (second_ms: number) =>
          chargeAmount(pricing, { second: String(second_ms / 1000) }, { second: String(held / 1000) });
        expect(charged(less)).toBeLessThanOrEqual(charged(more));
      }),
    );
  });
});

describe('for any input', () => {
  const attacks = fc.oneof(
    fc.constantFrom(
      -1,
      0,
      -0,
      1e308,
      2 ** 63,
      -(2 ** 63),
      1e-320,
      NaN,
      Infinity,
      -Infinity,
      '1e9',
      '-1',
      'NaN',
      '',
      null,
      true,
      '9'.repeat(400),
    ),
    fc.double(),
    fc.integer(),
    fc.string(),
    fc.jsonValue(),
  );

  it('the hold is a whole number of millionths within the limits, or the input is refused by name', () => {
    const model = {
      price: [row('image', '0.01'), row('second', '0.02'), row('megapixel', '0.5', undefined, 3)],
      estimate: {
        image: [{ field: 'n' }],
        second: [{ field: 'duration' }, { field: 'n' }],
        megapixel: [{ field: 'width' }, { field: 'width' }, { constant: '0.000001' }],
      },
    };
    const prices = (value: unknown) => {
      const input: JsonObject = {};
      Object.assign(input, value);
      const pricing = freezePricing(model, input, 'PLN', settings);
      const units = estimateUnits(model, input);
      return { hold: holdAmount(pricing, units), charge: chargeAmount(pricing, units, units) };
    };
    fc.assert(
      fc.property(fc.record({ n: attacks, duration: attacks, width: attacks }), (value) => {
        try {
          const { hold, charge } = prices(value);
          return charge >= 0n && charge <= hold && hold <= money_max;
        } catch (error) {
          return error instanceof ApiError && error.status === 422 && error.extras.param?.startsWith('input');
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('pricingOfInput', () => {
  const step = (amount: string, above_input_tokens: number): PriceRow => ({
    ...row('input_token', amount),
    above_input_tokens,
  });
  const price = [step('4', 200), row('input_token', '1'), step('2', 100), row('output_token', '5'), step('9', 100)];
  const pricing = freezePricing({ price }, {}, 'USD', settings);
  const inputPrice = (tokens: number) =>
    pricingOfInput(pricing, tokens).rows.flatMap(({ unit, amount }) => (unit === 'input_token' ? [amount] : []));

  it.each([
    [0, '1'],
    [100, '1'],
    [101, '2'],
    [200, '2'],
    [201, '4'],
  ])('has for %d tokens the price of %s each', (tokens, expected) => {
    expect(inputPrice(tokens)).toEqual([expected]);
  });

  it('leaves prices without steps unchanged', () => {
    expect(pricingOfInput(pricing, 500).rows).toContainEqual({ unit: 'output_token', amount: '5', per: 1 });
  });
});
