import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { moment, objectParameter, oneOf, parseQuery, wholeNumber } from '../../src/http/query.ts';
import { ApiError } from '../../src/errors.ts';

const query = (text: string) => parseQuery(text, undefined);

/** Returns the error that is thrown, as the caller sees it. */
function refusal(work: () => unknown): { kind: string; message: string; param: string | undefined } {
  try {
    work();
  } catch (error) {
    if (error instanceof ApiError) return { kind: error.kind, message: error.message, param: error.extras.param };
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('parseQuery', () => {
  test('reads what URLSearchParams writes', () => {
    const pairs = fc.uniqueArray(
      fc.tuple(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string({ unit: 'grapheme' })),
      {
        selector: ([name]) => name,
      },
    );
    fc.assert(
      fc.property(pairs, (written) => {
        expect([...query(String(new URLSearchParams(written)))]).toEqual(written);
      }),
    );
  });

  test('never throws anything but a 400, whatever the text', () => {
    const declared = { a: { description: '', schema: { type: 'string' } } };
    const outcome = (text: string) => {
      try {
        return parseQuery(text, declared).size <= 1 ? 'parsed' : 'too much';
      } catch (error) {
        return error instanceof ApiError ? error.kind : 'surprise';
      }
    };
    const texts = fc.oneof(fc.string(), fc.stringMatching(/^a=[%&=+a-f0-9]*$/));
    fc.assert(fc.property(texts, (text) => ['parsed', 'invalid_request'].includes(outcome(text))));
  });

  test('shows at most 60 characters of an unknown name', () => {
    const { message, param } = refusal(() => parseQuery(`${'x'.repeat(500)}=1`, {}));
    expect(message.length).toBeLessThan(120);
    expect(param).toHaveLength(60);
  });
});

describe('wholeNumber', () => {
  const range = { min: 1, max: 100 };

  test.each([
    ['n=1', 1],
    ['n=100', 100],
    ['n=007', 7],
    ['m=5', undefined],
  ])('reads %s as %s', (text, value) => expect(wholeNumber(query(text), 'n', range)).toBe(value));

  test.each(['0', '101', '-1', '1.5', '1e1', '', '+', ' 1', '0x1', 'NaN', '99999999999999999999'])(
    'refuses %j',
    (value) => {
      expect(refusal(() => wholeNumber(query(`n=${encodeURIComponent(value)}`), 'n', range))).toMatchObject({
        kind: 'invalid_request',
        param: 'n',
        message: expect.stringContaining('from 1 to 100'),
      });
    },
  );
});

describe('oneOf', () => {
  test('returns one of its values or undefined, or refuses with a suggestion', () => {
    expect(oneOf(query('s=b'), 's', ['a', 'b'])).toBe('b');
    expect(oneOf(query(''), 's', ['a', 'b'])).toBeUndefined();
    expect(refusal(() => oneOf(query('s=faild'), 's', ['failed', 'queued']))).toMatchObject({
      param: 's',
      message: expect.stringContaining('Did you mean "failed"?'),
    });
  });
});

describe('moment', () => {
  test.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T12:30Z', '2026-01-31T12:30:00.000Z'],
    ['2026-01-31T12:30:15.5+02:00', '2026-01-31T10:30:15.500Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ])('reads %s as %s', (text, iso) =>
    expect(moment(query(`t=${encodeURIComponent(text)}`), 't')?.toISOString()).toBe(iso),
  );

  test.each([
    '2026-02-29',
    '2026-02-30T00:00:00Z',
    '2026-13-01',
    '2026-01-31T12:30',
    '2026-01-31T25:00Z',
    'yesterday',
    '1767225600',
    '',
    '2026-1-1',
  ])('refuses %j', (text) => {
    expect(refusal(() => moment(query(`t=${encodeURIComponent(text)}`), 't'))).toMatchObject({ param: 't' });
  });
});

describe('objectParameter', () => {
  test('collects the members of this parameter only', () => {
    const parsed = query('metadata[a]=1&metadata[__proto__]=2&meta[a]=3&metadatax[a]=4&limit=5');
    expect(Object.entries(objectParameter(parsed, 'metadata'))).toEqual([
      ['a', '1'],
      ['__proto__', '2'],
    ]);
  });
});
