import fc from 'fast-check';
import { Members, Raw } from './text.ts';

/** Texts that have broken a parser, a database, a template or a prototype somewhere. */
const texts = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\u202e\ufeff\u200b',
  '😀'.repeat(40),
  'é'.repeat(300),
  'ﬀ①②⑦．⓪',
  "' or 1=1; drop table tasks; --",
  '%_%',
  '${7*7}{{7*7}}<%= 7 %>',
  '<script>alert(1)</script>',
  '../../../../etc/passwd',
  '\r\nset-cookie: a=b',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'NaN',
  '-0',
  '1e999',
  '[[fail]]',
  '[[fail before start]] [[moderate]]',
  '[[delay',
  'x'.repeat(5_000),
  '(a+)+$'.repeat(30),
  'http://127.0.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://[::ffff:7f00:1]/',
  'http://2130706433/',
  'file:///etc/passwd',
  'https://user:pass@example.com/',
  'sandbox/chat',
  'sandbox/video',
];

/** Numbers at and beyond the edges, some of which only a text can write. */
const numbers = [
  0,
  -0,
  -1,
  1,
  0.1,
  1e21,
  1e308,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  5e-324,
  new Raw('1e999'),
  new Raw('-1e999'),
  new Raw('9007199254740993'),
  new Raw('123456789012345678901234567890'),
  new Raw(`0.${'1'.repeat(400)}`),
  new Raw(`1${'0'.repeat(400)}`),
];

const prototypes = [
  new Raw('{"__proto__":{"polluted":true}}'),
  new Raw('{"constructor":{"prototype":{"polluted":true}}}'),
  new Raw('{"toString":1,"valueOf":null,"hasOwnProperty":2,"length":3}'),
  new Raw('{"toJSON":"x"}'),
];

/** Texts that are no JSON at all. */
const no_json = [
  'NaN',
  'Infinity',
  'undefined',
  "'a'",
  '{a:1}',
  '[1,]',
  '{"a":1,}',
  '01',
  '1.',
  '+1',
  '"\\x41"',
  '"\\ud8"',
  '"\t"',
  '/* */ 1',
].map((text) => new Raw(text));

export const nastyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...texts) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 80 }) },
  { weight: 1, arbitrary: fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }).map(fromUnits) },
);

/** Any UTF-16, lone surrogates included. */
function fromUnits(units: number[]): string {
  return String.fromCharCode(...units);
}

const nested = fc
  .tuple(fc.constantFrom('[', '{"a":'), fc.constantFrom(10, 62, 63, 64, 65, 66, 2_000))
  .map(([open, depth]) => new Raw(open.repeat(depth) + '1' + (open === '[' ? ']' : '}').repeat(depth)));

const crowd = fc.constantFrom(
  new Raw(`[${'0,'.repeat(20_000)}0]`),
  new Raw(`{${Array.from({ length: 2_000 }, (_, index) => `"k${index}":0`).join(',')}}`),
);

/** A value that is wrong, or only unusual, wherever it stands. */
export const nastyValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: nastyText },
  { weight: 6, arbitrary: fc.constantFrom(...numbers) },
  { weight: 4, arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], { '': '' }) },
  { weight: 2, arbitrary: fc.constantFrom(...prototypes) },
  { weight: 1, arbitrary: fc.constantFrom(...no_json) },
  { weight: 1, arbitrary: nested },
  { weight: 1, arbitrary: crowd },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: nastyValueTwice() },
);

/** One member twice, with different values: which of them counts must not matter to safety. */
function nastyValueTwice(): fc.Arbitrary<unknown> {
  return fc.tuple(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), fc.jsonValue({ maxDepth: 1 })).map(
    ([key, one, other]) =>
      new Members([
        [key, one],
        [key, other],
      ]),
  );
}

/** A member that somebody may hope to slip in. */
export const slippedIn: fc.Arbitrary<readonly [string, unknown]> = fc.tuple(
  fc.constantFrom(
    ...words('__proto__ constructor account_id key_id price cost status id estimate role api_base base_url provider'),
    ...words('route headers wait n model input metadata stream'),
  ),
  nastyValue,
);

/** A list as it is typed. */
export function words(text: string): string[] {
  return text.split(' ');
}
