import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openRelay } from '../by-name.ts';
import { framings, onWire, answerOf, scripts, type Piece } from '../wire.ts';
import type { JsonObject } from '../../../src/catalog/model.ts';

/** Streams for callers of Gemini's style. */

const options = {
  model: 'public',
  request_id: 'req_1',
  created: 5,
  input_tokens_estimated: 11,
  line_bytes_max: 1_000_000,
};
const body = { generationConfig: { thinkingConfig: { includeThoughts: true } } };

/** The parts of all chunks of a stream. */
function partsIn(text: string): JsonObject[] {
  return text
    .split('\r\n\r\n')
    .filter((frame) => frame !== '')
    .flatMap((frame) => JSON.parse(frame.replace(/^data: /, '')).candidates[0].content.parts as JsonObject[]);
}

const joined = (parts: readonly JsonObject[]) =>
  parts.map(({ text }) => (typeof text === 'string' ? text : '')).join('');

it.each(['completions', 'messages', 'responses'] as const)(
  'a stream of %s style has all its words, thoughts and calls',
  (upstream) => {
    fc.assert(
      fc.property(scripts(upstream), framings, fc.integer({ min: 1, max: 50 }), (script: Piece[], framing, size) => {
        const relay = openRelay({ ...options, caller: 'gemini', upstream, wants_usage: true, body });
        const bytes = Buffer.from(onWire(upstream, script, framing));
        const sent: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += size)
          sent.push(relay.push(bytes.subarray(at, at + size)) ?? Buffer.alloc(0));
        sent.push(relay.end() ?? Buffer.alloc(0));
        const parts = partsIn(Buffer.concat(sent).toString());
        const expected = answerOf(script, 'messages');
        expect(joined(parts.filter(({ thought }) => thought !== true))).toBe(expected.text);
        expect(joined(parts.filter(({ thought }) => thought === true))).toBe(expected.thinking);
        const calls = parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall]));
        expect(calls).toEqual(
          expected.calls.map(({ id, name, arguments: text }) => ({
            id,
            name,
            args: JSON.parse(text === '' ? '{}' : text),
          })),
        );
        expect(relay.finish).toBe('STOP');
      }),
    );
  },
);
