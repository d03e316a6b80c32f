import { expect, it } from 'vitest';
import { copyBody } from '../../src/contents/copy.ts';
import { messagesOf } from '../../src/contents/messages.ts';
import { redactionOf, Redactor } from '../../src/contents/redaction.ts';
import { personal_data } from '../../src/lib/personal-data.ts';
import { LongInteger } from '../../src/lib/long-integers.ts';

it('every text, name and long number of a value is redacted, and counted', async () => {
  const redactor = new Redactor(
    redactionOf({ redact: ['card'], patterns: [] }, { redact: ['email'], patterns: ['EMP-##'] }),
  );
  const value = {
    text: 'a@example.com, b@example.com and EMP-12',
    'c@example.com': [4_111_111_111_111_111, 41, true, null],
    long: new LongInteger('4111111111111111'),
  };
  expect(await redactor.redact(value)).toEqual({
    text: '[email], [email] and [redacted]',
    '[email]': ['[card]', 41, true, null],
    long: '[card]',
  });
  expect(redactor.counts).toEqual({ email: 3, card: 2, pattern: 1 });
});

it('others get their turn while much is redacted with many patterns', async () => {
  const patterns = Array.from({ length: 20 }, (_, index) => `a*a*a*a*a*a*a*b${index + 10}`);
  const redactor = new Redactor(redactionOf({ redact: personal_data, patterns }));
  const begun_ms = cpuTime();
  const turns: number[] = [];
  const timer = setInterval(() => turns.push(cpuTime()), 1);
  await redactor.redact({ text: 'a'.repeat(256_000) });
  clearInterval(timer);
  const took_ms = cpuTime() - begun_ms;
  const gaps = turns.map((at, index) => at - (turns[index - 1] ?? begun_ms));
  expect(turns.length).toBeGreaterThan(2); // a full machine merges some of them
  expect(Math.max(...gaps)).toBeLessThan(Math.max(100, took_ms / 3));
});

/** Time that this thread has computed, in milliseconds: a full machine does not count. */
function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

it('of a text that was cut, no half of something that would be redacted stays', async () => {
  const text = `${'word '.repeat(200)}4111 1111 1111 1111 ${'x '.repeat(2_000)}`;
  for (let length_max = 1_200; length_max < 1_600; length_max += 3) {
    const { body, is_cut } = copyBody({ text }, length_max);
    expect(is_cut).toBe(true);
    const redacted = await new Redactor(redactionOf({ redact: ['card'], patterns: [] })).redact(body);
    expect(JSON.stringify(redacted)).not.toMatch(/word \d/);
    expect(JSON.stringify(redacted)).toMatch(/\[… \d+ more characters\]/);
  }
});

it('the longest texts of a body are cut, and a body of too many values is left out', () => {
  const { body, is_cut } = copyBody({ short: 'Hello', long: 'x'.repeat(9_000), longer: 'y'.repeat(90_000) }, 10_000);
  expect(is_cut).toBe(true);
  expect(body).toMatchObject({ short: 'Hello' });
  const many = copyBody({ list: Array.from({ length: 60_000 }, () => 1) }, 10_000);
  expect(many).toEqual({ body: {}, is_cut: true, size: 0 });
});

it('items of the responses style and parts of Gemini’s are read as messages', () => {
  expect(
    messagesOf({
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: 'A bay' },
      ],
    }),
  ).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'A bay' },
  ]);
  expect(
    messagesOf({
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        {
          role: 'user',
          parts: [{ text: 'Hi' }, { inlineData: { mimeType: 'image/png', data: '[file of 9 bytes, not logged]' } }],
        },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: { at: 1 } } }] },
      ],
    }),
  ).toMatchObject([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ text: 'Hi' }, { text: '[file of 9 bytes, not logged]' }] },
    { role: 'assistant', tool_calls: [{ function: { name: 'look', arguments: '{"at":1}' } }] },
  ]);
});
