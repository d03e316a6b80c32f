import { expect, test } from 'vitest';
import { readableLine } from '../../src/lib/log-lines.ts';

const plain = { colors: false };
const at = new Date(2026, 10, 27, 9, 5, 3).getTime();
const line = (facts: object) => JSON.stringify({ level: 40, time: at, pid: 7, hostname: 'h', ...facts });

test('a line has time, level, message and facts', () => {
  const facts = { request_id: 'req_1', route: 'a/b#1', ms: 1.5, msg: 'a route gave no answer' };
  expect(readableLine(line(facts), plain)).toBe(
    '09:05:03 WARN  a route gave no answer request_id=req_1 route=a/b#1 ms=1.5\n',
  );
});

test('an error stands below its line, with its stack', () => {
  const err = { name: 'TypeError', message: 'x is no function', code: 'E1', stack: '    at a (b.ts:1)\n    at c' };
  expect(readableLine(line({ level: 50, msg: 'a tool failed', err }), plain)).toBe(
    '09:05:03 ERROR a tool failed\n         TypeError: x is no function (E1)\n         at a (b.ts:1)\n         at c\n',
  );
});

test('what an upstream wrote cannot move the cursor, clear the screen or forge a line', () => {
  const evil = '\u001B[2Jgone\r\n09:05:03 INFO  all is well';
  for (const facts of [
    { msg: evil },
    { msg: 'm', reason: evil },
    { msg: 'm', err: { name: evil, message: evil, stack: evil } },
  ]) {
    const shown = readableLine(line(facts), plain);
    expect(shown).not.toContain('\u001B');
    expect(shown).not.toContain('\r');
    expect(shown.split('\n').filter((each) => each.startsWith('09:05:03'))).toHaveLength(1);
  }
});

test('colours are used where they are wanted', () => {
  expect(readableLine(line({ level: 50, msg: 'm' }), { colors: true })).toContain('\u001B[31mERROR\u001B[0m');
});

test.each(['no JSON', '[1]', '7', ''])('a line that is no object is shown as it is: %j', (text) => {
  expect(readableLine(text, plain)).toBe(text);
});
