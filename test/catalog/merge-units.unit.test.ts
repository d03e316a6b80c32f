import { expect, it } from 'vitest';
import { mergeUnits } from '../../src/catalog/merge-units.ts';

it("an upstream's units are used where nothing was measured", () => {
  expect(mergeUnits({ input_token: '100', output_token: '7' }, { request: '1' })).toEqual({
    request: '1',
    input_token: '100',
    output_token: '7',
  });
});

it("our own measurements come before the upstream's units, and the last one first", () => {
  expect(mergeUnits({ image: '9', character: '5' }, { image: '2' }, { image: '3' })).toEqual({
    image: '3',
    character: '5',
  });
});

it.each([
  [{ second: '99', minute: '99' }, { second: '2.5' }, { second: '2.5' }],
  [{ second: '99' }, { minute: '1' }, { minute: '1' }],
  [{ minute: '99' }, {}, { minute: '99' }],
])('seconds and minutes replace each other: %j, %j', (reported, measured, units) => {
  expect(mergeUnits(reported, measured)).toEqual(units);
});

it.each([
  '-1',
  '+1',
  '1e3',
  ' 1',
  '1 ',
  '',
  'NaN',
  'Infinity',
  '0x10',
  '1,000',
  '1.',
  '.5',
  '1000000001',
  '1000000000.1',
  '9'.repeat(40),
  '0.' + '1'.repeat(30),
  5,
  null,
  undefined,
  {},
  ['1'],
  true,
])('an invalid count is left out: %j', (value) => {
  expect(mergeUnits({ output_token: value }, {})).toEqual({});
});

it('the largest valid count is accepted', () => {
  expect(mergeUnits({ output_token: '1000000000' }, {})).toEqual({ output_token: '1000000000' });
});

it('units are our own and never inherited ones', () => {
  expect(mergeUnits({ banana: '1', constructor: '2', ['__proto__']: '3' }, {})).toEqual({});
  expect(mergeUnits(Object.create({ image: '3' }), {})).toEqual({});
});
