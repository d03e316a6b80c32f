import { describe, expect, test } from 'vitest';
import { EventReader } from '../../clients/typescript/src/sse.ts';

function eventsOf(pieces: readonly Uint8Array[]): string[] {
  const reader = new EventReader();
  return pieces.flatMap((piece) => reader.take(piece));
}

const streams: readonly [string, string, string[]][] = [
  ['lines that end in LF', 'data: one\n\ndata: two\n\n', ['one', 'two']],
  ['lines that end in CRLF', 'data: one\r\n\r\ndata: two\r\n\r\n', ['one', 'two']],
  ['lines that end in CR', 'data: one\r\rdata: two\r\r', ['one', 'two']],
  ['lines of an event with all three ends', 'data: a\r\ndata: b\rdata: c\n\n', ['a\nb\nc']],
  ['comments alone and between', ': keep-alive\n\n:\n\ndata: one\n: in it\ndata: more\n\n', ['one\nmore']],
  ['other fields', 'event: x\nid: 7\nretry: 10\ndata: one\n\nevent: y\n\n', ['one']],
  ['data without a space, with two, and empty', 'data:one\n\ndata:  two\n\ndata\n\ndata:\n\n', ['one', ' two', '', '']],
  ['a colon in the data', 'data: {"a": "b: c"}\n\n', ['{"a": "b: c"}']],
  ['a mark of the byte order', '\uFEFFdata: one\n\n', ['one']],
  ['characters of two to four bytes', 'data: żółć 水 🚲\n\n', ['żółć 水 🚲']],
  ['an event that is cut', 'data: one\n\ndata: two\n', ['one']],
  ['an end mark', 'data: {}\n\ndata: [DONE]\n\n', ['{}', '[DONE]']],
];

describe('events of a stream with', () => {
  test.each(streams)('%s are read, cut at any byte and a byte at a time', (_name, text, expected) => {
    const bytes = new TextEncoder().encode(text);
    expect(eventsOf([bytes])).toEqual(expected);
    for (let at = 0; at <= bytes.length; at++)
      expect(eventsOf([bytes.slice(0, at), bytes.slice(at)])).toEqual(expected);
    expect(eventsOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(expected);
  });
});

test('an event of more than 64 MiB ends its stream, in one line or in many', () => {
  const half = new TextEncoder().encode(`data: ${'x'.repeat(33 * 1024 * 1024)}`);
  const line_end = Uint8Array.of(0x0a);
  expect(() => eventsOf([half, half])).toThrow('too long');
  expect(() => eventsOf([half, line_end, half])).toThrow('too long');
  expect(eventsOf([half, line_end, line_end, half])).toHaveLength(1);
});
