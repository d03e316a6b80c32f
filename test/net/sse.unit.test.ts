import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SseSplitter, SseTooLong, type SseFrame } from '../../src/net/sse.ts';
import { workedMs } from '../helpers/work.ts';

const bytes_max = 64_000_000;

function split(bytes: Buffer, cuts: readonly number[] = [], max = bytes_max): { frames: SseFrame[]; rest?: SseFrame } {
  const splitter = new SseSplitter(max);
  const places = [0, ...[...new Set(cuts)].toSorted((a, b) => a - b), bytes.length];
  const frames = places.slice(1).flatMap((to, index) => splitter.push(bytes.subarray(places[index], to)));
  const rest = splitter.rest();
  return rest ? { frames, rest } : { frames };
}

type SentEvent = { event: string; data: string };

function eventsOf(frames: readonly SseFrame[]): SentEvent[] {
  return frames.flatMap(({ event, data }) => (data === undefined ? [] : [{ event, data }]));
}

/** The event stream of the HTML standard, read line by line from the whole text. */
function readPlainly(text: string): SentEvent[] {
  const events: SentEvent[] = [];
  let event = '';
  let data: string[] = [];
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  for (const line of lines) {
    if (line === '') {
      if (data.length > 0) events.push({ event, data: data.join('\n') });
      event = '';
      data = [];
      continue;
    }
    const [, name = line, value = ''] = /^([^:]*):? ?(.*)$/su.exec(line) ?? [];
    if (name === 'event') event = value;
    if (name === 'data') data.push(value);
  }
  return events;
}

const value = fc.string({
  unit: fc.constantFrom('a', '{', ':', ' ', '"', 'ß', '水', '😀', '\u2028', '\u0085'),
  maxLength: 8,
});
const line = fc.oneof(
  fc.tuple(fc.constantFrom('data:', 'data: '), value).map((parts) => parts.join('')),
  fc.constantFrom(
    'event: message_stop',
    'event:x',
    'id: 7',
    'retry: 10',
    ': keep-alive',
    ':',
    'data',
    'Data: x',
    ' data: x',
  ),
);
const end = fc.constantFrom('\n', '\r\n', '\r');
const event = fc
  .tuple(fc.array(fc.tuple(line, end), { minLength: 1, maxLength: 4 }), end)
  .map(([lines, last]) => lines.map((parts) => parts.join('')).join('') + last);
const stream = fc
  .tuple(fc.constantFrom('', '\uFEFF'), fc.array(fc.oneof({ weight: 5, arbitrary: event }, end), { maxLength: 6 }))
  .map(([mark, events]) => `${mark}${events.join('')}\n\n`); // a CR before an LF may have left an event open

describe('T42: a stream of events that is cut anywhere', () => {
  test('means the same whatever the cuts, and what the standard says', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 12 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        const inside = cuts.filter((at) => at < bytes.length);
        const { frames } = split(bytes, inside);
        expect(eventsOf(frames)).toEqual(readPlainly(text));
      }),
      { numRuns: 1_000 },
    );
  });

  test('means the same byte for byte and at every single cut', () => {
    const bytes = Buffer.from(
      '\uFEFF: 水\r\n\r\nevent:größe\rdata:{"a":\rdata: "😀"}\r\rdata: x\n\n\n\ndata:\r\n\r\ndata: [DONE]\r\n\r\n',
    );
    const expected = readPlainly(bytes.toString());
    expect(expected).toHaveLength(4);
    expect(eventsOf(split(bytes, Array.from(bytes.keys())).frames)).toEqual(expected);
    for (const at of bytes.keys()) expect(eventsOf(split(bytes, [at]).frames)).toEqual(expected);
  });

  test('loses and gains no byte but the byte order mark: its events joined are the stream', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 12 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        const { frames, rest } = split(
          bytes,
          cuts.filter((at) => at < bytes.length),
        );
        const all = Buffer.concat([...frames, ...(rest ? [rest] : [])].map(({ raw }) => raw));
        expect(all.toString()).toBe(text.replace(/^\uFEFF/, ''));
      }),
      { numRuns: 1_000 },
    );
  });

  test('consists of events whose bytes mean the same alone', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(200), { maxLength: 12 }), (text, cuts) => {
        const bytes = Buffer.from(text);
        for (const frame of split(
          bytes,
          cuts.filter((at) => at < bytes.length),
        ).frames) {
          expect(readPlainly(frame.raw.toString())).toEqual(eventsOf([frame]));
          const values = frame.data_lines.map(({ from, to }) => frame.raw.toString('utf8', from, to));
          expect(values.join('\n')).toBe(frame.data ?? '');
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('an event without its end', () => {
  test.each([
    ['data: {"a":1}', '{"a":1}'],
    ['data: {"a":1}\n', '{"a":1}'],
    ['data: {"a":1}\r', '{"a":1}'],
    ['data: {"a":1}\r\n', '{"a":1}'],
    ['event: x\ndata: a\ndata: b', 'a\nb'],
  ])('is passed on whole: %j', (text, data) => {
    const { frames, rest } = split(Buffer.from(text));
    expect(frames).toEqual([]);
    expect(rest?.data).toBe(data);
    expect(eventsOf(split(rest?.raw ?? Buffer.alloc(0)).frames)).toEqual(eventsOf(rest ? [rest] : []));
  });

  test.each([': keep', 'data:', 'event: message_st', 'dat', 'id: 7\n'])(
    'is left out when it has no data: %j',
    (text) => {
      expect(split(Buffer.from(`data: x\n\n${text}`)).rest).toBeUndefined();
    },
  );

  test('is not created by the last LF of a CRLF that was cut', () => {
    const { frames, rest } = split(Buffer.from('data: x\r\n\r\n'), [10]);
    expect(frames.map(({ raw }) => raw.toString())).toEqual(['data: x\r\n\r']);
    expect(rest).toMatchObject({ data: undefined });
    expect(rest?.raw.toString()).toBe('\n');
  });
});

describe('T45: a huge event', () => {
  test.each([65_536, 1_024])(
    'of 10 MB in pieces of %d bytes moves each byte a few times, not once per piece',
    (piece_bytes) => {
      const bytes = Buffer.from(`data: ${'水'.repeat(3_333_333)}\n\n`);
      const splitter = new SseSplitter(bytes_max);
      const frames: SseFrame[] = [];
      const begun_at_ms = workedMs();
      for (let at = 0; at < bytes.length; at += piece_bytes)
        frames.push(...splitter.push(bytes.subarray(at, at + piece_bytes)));
      // 20 ms on a free machine; in pieces of 1 kB, joining with each piece would move 50 GB.
      expect(workedMs() - begun_at_ms).toBeLessThan(3_000);
      expect(frames.map(({ raw }) => raw.length)).toEqual([bytes.length]);
    },
  );

  test('costs no more when its lines end with CR alone', () => {
    const text = `${'data: x\r'.repeat(100_000)}\r`;
    const begun_at_ms = workedMs();
    expect(split(Buffer.from(text)).frames).toHaveLength(1);
    expect(workedMs() - begun_at_ms).toBeLessThan(3_000);
  });

  test('above the limit is refused, however it arrives', () => {
    const bytes = Buffer.from(`data: ${'x'.repeat(1_000)}\n\n`);
    expect(() => split(bytes.subarray(0, -1), [], 500)).toThrow(SseTooLong);
    expect(() => split(bytes, Array.from(bytes.keys()), 500)).toThrow(SseTooLong);
    expect(split(bytes, Array.from(bytes.keys()), 2_000).frames).toHaveLength(1);
  });
});
