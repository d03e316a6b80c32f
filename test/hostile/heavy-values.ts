import fc from 'fast-check';
import { Raw } from './text.ts';

/**
 * Values that cost whoever reads them more than they look: what takes a parser, a regular expression, a schema or a
 * concatenation time that grows faster than its length. Each is made for a size in bytes.
 */

/** Most are small: what is quadratic shows at 10 kB already, what is only large at the limit of the endpoint. */
export const heavySize: fc.Arbitrary<number> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(1_000, 4_000, 10_000) },
  { weight: 8, arbitrary: fc.constantFrom(64_000, 200_000) },
  { weight: 4, arbitrary: fc.constantFrom(900_000, 2_000_000) },
  { weight: 1, arbitrary: fc.constantFrom(8_000_000, 19_000_000, 31_000_000) },
);

/** Texts that are repeated inside of a JSON string, as they stand there. */
const repeated_texts = [
  'a',
  ' ',
  'a ',
  '\\n',
  '\\r\\n',
  '\\t',
  '\\\\',
  '\\"',
  '\\u0000',
  '\\u2028',
  '\\ud83d\\ude00',
  '\\ud800',
  '😀',
  'é',
  'e\u0301',
  '\u0301',
  '\u200d',
  '👩‍👩‍👧‍👦',
  'İ',
  'ﬃ',
  '漢',
  '.',
  '-',
  '_',
  '=',
  '%',
  '%41',
  '&a=b',
  ';a=b',
  ', ',
  '(',
  '[',
  '{',
  '[[',
  ']]',
  '[[delay ',
  '[[tool a {',
  '[[tokens 1]] ',
  '<',
  '<think>',
  '</think>',
  '<a ',
  '```',
  '```json\\n',
  '[a](',
  '![a](',
  'http://',
  'http://a ',
  'https://a@b:c@',
  'data:',
  'data:image/png;base64,',
  'data: x\\n\\n',
  'event: x\\n',
  '{\\"a\\":',
  '[\\"a\\",',
  '{}',
  '1',
  '1e9',
  '../',
  '/',
  '~1',
  'a@',
  'sk-',
  'mdl_',
  'Bearer ',
  '::',
  '0:',
  '\ufeff',
  'x-anthropic-billing-header:',
];

/** Ends that make a regular expression look at all of it again. */
const ends = ['', '', '!', ' x', '\\n', '\\"', '='];

const long_text = fc
  .tuple(
    fc.constantFrom(...repeated_texts),
    fc.constantFrom(...ends),
    fc.constantFrom('', 'data:image/png;base64,', '{', 'a '),
  )
  .map(
    ([piece, end, start]) =>
      (size: number) =>
        new Raw(`"${start}${piece.repeat(timesOf(piece, size))}${end}"`),
  );

const base64 = fc
  .constantFrom('A', 'AA==', '=A', 'A\\n', '-_', 'A A', '%2B', 'é')
  .chain((piece) =>
    fc
      .constantFrom(
        'image/png;base64',
        'image/png',
        ';base64',
        'audio/wav;base64',
        'application/pdf;base64',
        ';a=b;base64',
      )
      .map((type) => (size: number) => new Raw(`"data:${type},${piece.repeat(timesOf(piece, size))}"`)),
  );

const items = fc
  .constantFrom(
    '0',
    '""',
    '"a"',
    '[]',
    '{}',
    'null',
    '-0.1e-5',
    '{"type":"text","text":""}',
    '{"role":"user","content":""}',
  )
  .map((piece) => (size: number) => new Raw(`[${listed(size, () => piece)}]`));

const distinct_items = fc
  .constantFrom('"k#"', '#', '{"k#":0}', '["#"]', '{"type":"text","text":"#"}', '#.5')
  .map((piece) => (size: number) => new Raw(`[${listed(size, (index) => piece.replaceAll('#', String(index)))}]`));

const members = fc
  .constantFrom(
    '"k#":0',
    '"#":0',
    '"k":#',
    `"${'p'.repeat(60)}#":{}`,
    '"\\u006b#":""',
    '"__proto__":{"a#":1}',
    '"a/~#":[]',
  )
  .map(
    (piece) => (size: number) =>
      new Raw(`{${listed(size, (index) => piece.replaceAll('#', String(index)), members_max)}}`),
  );

const numbers = fc.constantFrom('1', '9', '12345678901234567').chain((digits) =>
  fc.constantFrom(
    (size: number) => new Raw(digits.repeat(timesOf(digits, size))),
    (size: number) => new Raw(`-0.${digits.repeat(timesOf(digits, size))}`),
    (size: number) => new Raw(`[${listed(size, (index) => `9${'0'.repeat(15)}${index}`)}]`),
    (size: number) => new Raw(`{${listed(size, (index) => `"a${index}":-9${'1'.repeat(20)}`, members_max)}}`),
    (size: number) => new Raw(`1e${'9'.repeat(size)}`),
    (size: number) => new Raw(`[${listed(size, () => '9'.repeat(900))}]`),
  ),
);

/** As deep as is allowed, and as wide as the size lets it be. */
const deep = fc
  .tuple(fc.constantFrom(5, 30, 58), fc.constantFrom('[', '{"a":', '[[],{"k":', '{"type":"object","properties":{"a":'))
  .map(([depth, open]) => (size: number) => {
    const close = [...open.matchAll(/[[{]/g)].map(([bracket]) => (bracket === '[' ? ']' : '}'));
    const unbalanced = open.includes('[]') ? close.slice(0, 1).concat(close.slice(2)) : close;
    const levels = Math.max(1, Math.floor(depth / unbalanced.length));
    const one = open.repeat(levels) + '0' + unbalanced.toReversed().join('').repeat(levels);
    return new Raw(`[${listed(size, () => one)}]`);
  });

/** A value of about so many bytes. */
type Sized = (size: number) => Raw;

const anything: fc.Arbitrary<Sized> = fc.oneof(
  { weight: 6, arbitrary: long_text },
  { weight: 2, arbitrary: base64 },
  { weight: 2, arbitrary: items },
  { weight: 2, arbitrary: distinct_items },
  { weight: 2, arbitrary: members },
  { weight: 1, arbitrary: numbers },
  { weight: 2, arbitrary: deep },
);

export const heavyText: fc.Arbitrary<Sized> = fc.oneof(
  { weight: 4, arbitrary: long_text },
  { weight: 1, arbitrary: base64 },
);

export const heavyValue: fc.Arbitrary<Sized> = anything;

const patterns = [
  '(a+)+$',
  '(a|a)*b',
  '^(.*)*$',
  '[a-z]{1000}',
  '(a{30}){30}',
  '((((a*)*)*)*)*',
  '\\\\d+',
  '[^\\\\w]',
  '(?=a)',
  'a|',
  '(',
  '\\\\p{L}',
  '.{64}',
];

/** Schemas that ask whoever reads them, or makes a value of them, for much. */
const schemas: readonly ((size: number, pattern: string) => string)[] = [
  (size, pattern) => object(`"a":{"type":"string","pattern":"${pattern.repeat(timesOf(pattern, size))}"}`),
  (size, pattern) =>
    object(
      listed(size, (index) => `"a${index}":{"type":"string","pattern":"${pattern}","minLength":500}`, members_max),
    ),
  (size, pattern) =>
    `{"type":"array","minItems":64,"items":{"type":"array","minItems":31,"items":{"type":"string","pattern":"${pattern.repeat(timesOf(pattern, size))}"}}}`,
  (size) => object(`"a":{"enum":[${listed(size, (index) => `"v${index}"`)}]}`),
  (size) => object(`"a":{"enum":[${listed(size, (index) => String(index))}],"type":"string"}`),
  (size) =>
    `{"$ref":"#/$defs/d0","$defs":{${listed(size, (index) => `"d${index}":{"$ref":"#/$defs/d${index + 1}"}`, members_max)}}}`,
  (size) =>
    `{"$ref":"#/$defs/d0","$defs":{${listed(size, (index) => `"d${index}":{"allOf":[{"$ref":"#/$defs/d${index + 1}"},{"$ref":"#/$defs/d${index + 2}"}]}`, members_max)}}}`,
  (size) =>
    `{"type":"object","$defs":{"n":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"}},"required":["a","b"]}},"properties":{${listed(size, (index) => `"p${index}":{"$ref":"#/$defs/n"}`, members_max)}}}`,
  (size) => `{"$ref":"#${'/a'.repeat(size / 2)}"}`,
  (size) => `{"$ref":"#/${'~1~0%41'.repeat(size / 8)}"}`,
  (size) => `{"$ref":"#","$defs":{${listed(size, (index) => `"d${index}":{}`, members_max)}}}`,
  (size) =>
    `{"anyOf":[${listed(size, (index) => `{"type":"object","properties":{"k":{"const":${index}}},"required":["k"]}`)}]}`,
  (size) => `{"oneOf":[${listed(size, () => '{"anyOf":[{"type":"null"},{"type":"string"}]}')}]}`,
  (size) =>
    `{"allOf":[${listed(size, (index) => `{"properties":{"p${index}":{"type":"string"}},"required":["p${index}"]}`)}]}`,
  (size) => object(listed(size, (index) => `"p${index}":{"type":"integer","minimum":${index}}`, members_max)),
  (size) => `{"type":"object","required":[${listed(size, (index) => `"r${index}"`)}]}`,
  (size) => `{"type":"object","patternProperties":{${listed(size, (index) => `"(a+)+${index}$":{}`, members_max)}}}`,
  (size) =>
    `{"type":"array","items":{"type":"array","items":{"type":"array","minItems":${size}},"minItems":${size}},"minItems":${size}}`,
  (size) =>
    object(
      `"a":{"type":"string","minLength":${size * 1_000}},"b":{"type":"string","description":"${'d'.repeat(size)}"}`,
    ),
  (size) =>
    `${'{"type":"object","properties":{"a":'.repeat(20)}{"enum":[${listed(size, (index) => `"v${index}"`)}]}${'}}'.repeat(20)}`,
  (size) => `{"type":[${listed(size, () => '"string"')}],"title":"${'t'.repeat(100)}"}`,
  (size) => object(`"a":{"const":[${listed(size, (index) => `{"k":${index}}`)}]}`),
  (size) =>
    `{"type":"array","uniqueItems":true,"minItems":64,"items":{"enum":[${listed(size, (index) => `{"k":${index}}`)}]}}`,
  (size) =>
    `{"if":{},"then":{},"dependentSchemas":{${listed(size, (index) => `"d${index}":{"required":["x"]}`, members_max)}}}`,
];

export const heavySchema: fc.Arbitrary<Sized> = fc.tuple(fc.constantFrom(...schemas), fc.constantFrom(...patterns)).map(
  ([write, pattern]) =>
    (size: number) =>
      new Raw(write(size, pattern)),
);

function object(properties: string): string {
  return `{"type":"object","properties":{${properties}},"additionalProperties":false}`;
}

/** Of one object, as many as are just allowed: what is beyond is refused, and shows little. */
const members_max = 9_900;
const items_max = 900_000;

/** Pieces with commas between them, of so many bytes together. */
export function listed(size: number, piece: (index: number) => string, count_max = items_max): string {
  const count = Math.max(1, Math.min(count_max, Math.floor(size / (piece(1_000).length + 1))));
  return Array.from({ length: count }, (_, index) => piece(index)).join(',');
}

function timesOf(piece: string, size: number): number {
  return Math.max(1, Math.floor(size / Buffer.byteLength(piece)));
}
