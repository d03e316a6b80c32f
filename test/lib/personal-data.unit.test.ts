import { expect, it } from 'vitest';
import { findPersonalData, personal_data, type PersonalData } from '../../src/lib/personal-data.ts';

function textsOf(kind: PersonalData, text: string): string[] {
  return findPersonalData[kind](text).map(({ from, to }) => text.slice(from, to));
}

it.each<[PersonalData, string, string[]]>([
  ['email', 'Write to a.b+c@mail.example.com. Or żółw@przykład.pl!', ['a.b+c@mail.example.com', 'żółw@przykład.pl']],
  ['email', 'a @ b, @everybody, x@y, 3@.com', []],
  ['phone', '+48 123 456 789, (555) 123-4567, 555-123-4567', ['+48 123 456 789', '(555) 123-4567', '555-123-4567']],
  ['phone', '2026-11-28, 1 000 000, 192.168.100.200, v1.2.3', []],
  [
    'card',
    '4111 1111 1111 1111, 378282246310005, 5500-0000-0000-0004',
    ['4111 1111 1111 1111', '378282246310005', '5500-0000-0000-0004'],
  ],
  ['card', '4111 1111 1111 1112, 2026-11-28 1 000 000, 12345678901234567890123', []],
  [
    'iban',
    'Pay PL61 1090 1014 0000 0712 1981 2874 with DE89370400440532013000.',
    ['PL61 1090 1014 0000 0712 1981 2874', 'DE89370400440532013000'],
  ],
  ['iban', 'PL61 1090 1014 0000 0712 1981 2875, AB12 is a model of 2026 and more', []],
  [
    'secret',
    'sk-proj-abcdefghij0123456789 and Authorization: Bearer abc.def-ghi_jkl',
    ['sk-proj-abcdefghij0123456789', 'Bearer abc.def-ghi_jkl'],
  ],
  [
    'secret',
    'api_key="hunter2hunter2", mdl_000000000000000000000000000000000000',
    ['mdl_000000000000000000000000000000000000', 'api_key="hunter2hunter2'],
  ],
  [
    'secret',
    'a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b',
    ['-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----'],
  ],
  ['secret', 'skating, the bearer of news, ask-me-anything', []],
])('%s: in %j are %j', (kind, text, expected) => {
  expect(textsOf(kind, text)).toEqual(expected);
});

/** Each is made to keep an expression busy that goes back and tries again. */
const hostile = [
  'a',
  '1',
  '1 ',
  'a@',
  'a@a.',
  'PL61',
  'PL61 ',
  'sk-',
  'eyJ-',
  '+1',
  '(12',
  '00',
  'Bearer ',
  'api_key=a ',
  '-----BEGIN PRIVATE KEY-----',
  '-----BEGIN ',
  `${'eyJ-'.repeat(50)}.${'a'.repeat(4_000)}`,
];

it.each(hostile.map((text) => [text.slice(0, 30), text]))(
  'a long text of %j takes no longer than others',
  (_, text) => {
    const timesOf = (length: number) => {
      const long = text.repeat(Math.ceil(length / text.length));
      const begun = process.cpuUsage();
      for (const kind of personal_data) findPersonalData[kind](long);
      return process.cpuUsage(begun).user / 1_000;
    };
    timesOf(16_384); // compiled
    const few = Math.min(...Array.from({ length: 3 }, () => timesOf(16_384)));
    const many = Math.min(...Array.from({ length: 3 }, () => timesOf(131_072)));
    expect(many).toBeLessThan(Math.max(few, 5) * 8 * 5); // eight times as long; what goes back would take 64 times
  },
);
