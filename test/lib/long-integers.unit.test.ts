import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LongInteger, parseExactly, TooManyLongIntegers } from '../../src/lib/long-integers.ts';
import { workedMs } from '../helpers/work.ts';

type Tree = bigint | number | string | boolean | null | Tree[] | { [key: string]: Tree };

/** Text as other writers of JSON write it, whose whole numbers have no end. */
function written(tree: Tree, space: string): string {
  if (typeof tree === 'bigint') return String(tree);
  if (typeof tree !== 'object' || tree === null) return JSON.stringify(tree);
  const around = (open: string, inner: string[], close: string) =>
    `${open}${space}${inner.join(`${space},${space}`)}${space}${close}`;
  if (Array.isArray(tree))
    return around(
      '[',
      tree.map((each) => written(each, space)),
      ']',
    );
  const members = Object.entries(tree).map(
    ([key, each]) => `${JSON.stringify(key)}${space}:${space}${written(each, space)}`,
  );
  return around('{', members, '}');
}

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '12345678901234567',
    ', 12345678901234567',
    '\\',
    '"',
    '\\",-12345678901234567',
    ':12345678901234567}',
  ),
);
/**
 * No indexes, which come first in every object. No backslashes: Node 26 takes the name `"` for `\` where it has parsed an
 * object with that name in the same place before.
 */
const plain = text.filter((each) => !/^\d{1,10}$|\\/.test(each));
const key = fc.oneof(plain, fc.constantFrom('__proto__', 'toJSON', 'rawJSON', 'digits'));
const { tree: any_tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
    fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Number.isInteger(value)),
    text,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('tree')),
    fc.dictionary(key, tie('tree')),
  ),
}));

it('a parsed long integer is written with every digit, whatever surrounds it', () => {
  fc.assert(
    fc.property(fc.array(any_tree), fc.constantFrom('', ' ', '\n\t'), (tree, space) => {
      expect(JSON.stringify(parseExactly(written(tree, space)))).toBe(written(tree, ''));
    }),
    { numRuns: 2_000 },
  );
});

describe('a number', () => {
  it.each([
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
    ['0.12345678901234567890', 0.12345678901234568],
    ['12345678901234567.0', 12345678901234568],
    ['1e20', 1e20],
    ['"12345678901234567"', '12345678901234567'],
  ])('in %s is not long and becomes what JSON.parse returns', (json, value) => {
    expect(parseExactly(`[1, ${json}]`)).toEqual([1, value]);
  });

  it.each(['9007199254740992', '-9007199254740993', '18446744073709551615', '1'.repeat(400)])(
    'in %s is long',
    (json) => {
      const [value] = [parseExactly(` [${json} ]`)].flat();
      expect(value).toBeInstanceOf(LongInteger);
      expect(String(value)).toBe(json);
      expect(Number(value)).toBe(Number(json));
    },
  );
});

it.each([
  '{12345678901234567: 1}',
  '[01234567890123456789]',
  '[-]',
  '[12345678901234567 12345678901234567]',
  '[12345678901234567',
  '"12345678901234567',
  '[ 12345678901234567.]',
])('the text %s is not JSON, with or without long integers', (json) => {
  expect(() => parseExactly(json)).toThrow(SyntaxError);
});

it('a million values with a long integer among them take milliseconds, and any nesting is accepted', () => {
  const many = `[${'1,'.repeat(999_999)}12345678901234567]`;
  const begun_ms = workedMs();
  expect(JSON.stringify(parseExactly(many))).toBe(many);
  expect(workedMs() - begun_ms).toBeLessThan(2_000); // 0.1 s; a reviver takes a second
  const deep = `${'['.repeat(200_000)} 12345678901234567${']'.repeat(200_000)}`;
  expect(() => parseExactly(deep)).not.toThrow('');
});

it('more than 20,000 long integers are refused as soon as they are counted', () => {
  const list = (count: number) => `[${Array.from({ length: count }, () => '12345678901234567').join(',')}]`;
  expect(JSON.stringify(parseExactly(list(20_000)))).toBe(list(20_000));
  expect(() => parseExactly(list(20_001))).toThrow(TooManyLongIntegers);
});
