import { expect, it } from 'vitest';
import { matches } from './matches.ts';

it.each([
  ['text', 'balance 25.000000 USD', 'balance 25.000000 USD\n', true],
  ['text', 'balance 25.000000 USD', 'balance 25.000001 USD\n', false],
  ['text', 'a.c', 'abc\n', false],
  ['text', 'acct_…\nbalance 1', 'acct_01\nbalance 1\n', true],
  ['text', 'acct_…\nbalance 1', 'acct_01\nwarning\nbalance 1\n', false],
  ['text', '…\nlast', 'first\nsecond\nlast\n', true],
  ['text', 'first\n…', 'first\n', true],
  ['text', 'first\n…', 'other\n', false],
  ['text', 'a  b', 'a  b   \n', true],
  ['json', '{"id":"task_…","n":1}', '{"id":"task_9","n":1,"more":true}', true],
  ['json', '{"id":"task_…","n":1}', '{"id":"task_9","n":2}', false],
  ['json', '{"size_bytes":"…"}', '{"size_bytes":17}', true],
  ['json', '{"size_bytes":"…"}', '{}', false],
  ['json', '{"output":[{"type":"image"}]}', '{"output":[{"type":"image","width":1}]}', true],
  ['json', '{"output":[]}', '{"output":[{"type":"image"}]}', false],
  ['json', '{"error":null}', '{"error":{"type":"x"}}', false],
])('%s %s against %s: %s', (language, shown, printed, expected) => {
  expect(matches(language, shown, printed)).toBe(expected);
});
