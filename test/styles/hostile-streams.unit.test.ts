import fc from 'fast-check';
import { expect, it } from 'vitest';
import { JsonEnd } from '../../src/styles/messages/json-end.ts';
import type { Relay } from '../../src/styles/relay.ts';
import { workedMs } from '../helpers/work.ts';
import { openRelay } from './by-name.ts';

/** Streams of upstreams, or of models that a caller has told what to say, that took time or memory beyond their size. */

const list = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

/** Upper bound for the streams that once took 10 s or more: they take less than a second. */
const patience_ms = 5_000;

function relay(): Relay {
  return openRelay({
    caller: 'messages',
    upstream: 'completions',
    model: 'm',
    wants_usage: true,
    request_id: 'r',
    input_tokens_estimated: 1,
    created: 1,
    line_bytes_max: 64_000_000,
  });
}

function delta(index: number, called: { name?: string; arguments?: string }): Buffer {
  const call = { index, ...(called.name !== undefined && { id: `c${index}` }), function: called };
  return Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`);
}

/** Returns the text that callers get, and the time that it took. */
function carry(frames: readonly Buffer[]): { text: string; took_ms: number } {
  const carried = relay();
  const started = workedMs();
  const sent = frames.map((frame) => carried.push(frame) ?? Buffer.alloc(0));
  const took_ms = workedMs() - started;
  return { text: Buffer.concat(sent).toString(), took_ms };
}

it('calls that wait for another one are found at once', () => {
  const count = 50_000;
  const { text, took_ms } = carry([
    ...list(count, (i) => delta(i, { name: 'f' })),
    ...list(count, (i) => delta(count - 1 - i, { arguments: '{}' })),
  ]);
  expect(text.split('event: content_block_start')).toHaveLength(count + 1);
  expect(took_ms).toBeLessThan(patience_ms);
});

it('arguments full of braces are not read again with each piece', () => {
  const { text, took_ms } = carry([
    delta(0, { name: 'f', arguments: '{"a":"' }),
    delta(1, { name: 'g', arguments: '{}' }),
    ...list(40_000, () => delta(0, { arguments: 'abcdef}' })),
    delta(0, { arguments: '"}' }),
  ]);
  expect(text.match(/content_block_start"/g)).toHaveLength(2);
  expect(took_ms).toBeLessThan(patience_ms);
});

it('an object is complete when its last brace is closed', () => {
  const cut = fc.tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat());
  fc.assert(
    fc.property(cut, ([value, place]) => {
      const text = JSON.stringify(value);
      const at = place % text.length;
      const end = new JsonEnd();
      end.push(text.slice(0, at));
      expect(end.is_whole).toBe(false);
      end.push(text.slice(at));
      expect(end.is_whole).toBe(true);
      end.push(' \n');
      expect(end.is_whole).toBe(true);
    }),
  );
});

it('a stream that never has content is cut before it fills the memory', () => {
  const carried = relay();
  for (let chunk = 0; chunk < 100 && !carried.failure; chunk++) carried.push(Buffer.from(': x\n\n'.repeat(10_000)));
  expect(carried.failure?.message).toContain('No content');
});

it('an event of endless lines is cut before it fills the memory', () => {
  const carried = relay();
  for (let chunk = 0; chunk < 100 && !carried.failure; chunk++) carried.push(Buffer.from('a\n'.repeat(10_000)));
  expect(carried.failure?.message).toContain('lines');
});
