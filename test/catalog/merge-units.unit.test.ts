import { expect, it } from 'vitest';
import { mergeUnits } from '../../src/catalog/merge-units.ts';

it('takes what the upstream tells where nothing was measured', () => {
  expect(mergeUnits({ input_token: '100', output_token: '7' }, { request: '1' })).toEqual({
    request: '1',
    input_token: '100',
    output_token: '7',
  });
});

it('believes its own measurement first, the last one most', () => {
  expect(mergeUnits({ image: '9', character: '5' }, { image: '2' }, { image: '3' })).toEqual({
    image: '3',
    character: '5',
  });
});

it.each([
  [{ second: '99', minute: '99' }, { second: '2.5' }, { second: '2.5' }],
  [{ second: '99' }, { minute: '1' }, { minute: '1' }],
  [{ minute: '99' }, {}, { minute: '99' }],
])('seconds and minutes tell each other: %j, %j', (told, measured, units) => {
  expect(mergeUnits(told, measured)).toEqual(units);
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
])('leaves out what is no count: %j', (value) => {
  expect(mergeUnits({ output_token: value }, {})).toEqual({});
});

it('takes the largest count that there may be', () => {
  expect(mergeUnits({ output_token: '1000000000' }, {})).toEqual({ output_token: '1000000000' });
});

it('knows no units but its own, and none that are inherited', () => {
  expect(mergeUnits({ banana: '1', constructor: '2', ['__proto__']: '3' }, {})).toEqual({});
  expect(mergeUnits(Object.create({ image: '3' }), {})).toEqual({});
});
