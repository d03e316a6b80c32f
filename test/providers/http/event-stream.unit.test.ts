import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asServerEvents, EventStreamError, EventStreamSplitter } from '../../../src/providers/http/event-stream.ts';
import { workedMs } from '../../helpers/work.ts';
import { checksum, eventFrame, frameOf } from '../imitations/event-stream.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

function read(bytes: Buffer, ...cuts: number[]) {
  const splitter = new EventStreamSplitter();
  const places = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
  return places.slice(1).flatMap((to, index) => [...splitter.push(bytes.subarray(places[index], to))]);
}

describe('frames of AWS', () => {
  it.each([
    ['an empty one', '00000010 00000000 05c248eb 7d98c8ff', {}, ''],
    [
      'a payload without headers',
      '0000001d 00000000 fd528c5a 7b27666f6f273a27626172277d c3653936',
      {},
      "{'foo':'bar'}",
    ],
  ])('are read as in the published vectors of their specification: %s', (_, bytes, headers, payload) => {
    const messages = read(hex(bytes));
    expect(messages.map((message) => [message.headers, message.payload.toString()])).toEqual([[headers, payload]]);
  });

  it('are read whole, wherever they are cut, with headers of every type between', () => {
    const frames = Buffer.concat([
      frameOf(
        { ':event-type': 'a', flag: true, off: false, many: 40_000, raw: Buffer.from([0, 255]), last: 'ü' },
        '{"x":1}',
      ),
      eventFrame('b', ''),
      eventFrame('c', 'x'.repeat(3_000)),
    ]);
    const expected = [
      [{ ':event-type': 'a', last: 'ü' }, '{"x":1}'],
      [{ ':event-type': 'b', ':content-type': 'application/json', ':message-type': 'event' }, ''],
      [{ ':event-type': 'c', ':content-type': 'application/json', ':message-type': 'event' }, 'x'.repeat(3_000)],
    ];
    fc.assert(
      fc.property(fc.array(fc.nat(frames.length), { maxLength: 40 }), (cuts) => {
        const messages = read(frames, ...cuts);
        expect(messages.map(({ headers, payload }) => [headers, payload.toString()])).toEqual(expected);
      }),
    );
  });

  it('that drip byte by byte are read once, in the memory of one', () => {
    const frame = eventFrame('a', 'x'.repeat(2_000_000));
    const splitter = new EventStreamSplitter();
    const started = workedMs();
    const messages = [];
    for (let at = 0; at < frame.length; at++) messages.push(...splitter.push(frame.subarray(at, at + 1)));
    expect(messages).toHaveLength(1);
    expect(workedMs() - started).toBeLessThan(5_000);
  });

  it('with any bit turned are refused, or not complete', () => {
    const frame = eventFrame('chunk', { bytes: 'AAAA' });
    for (let bit = 0; bit < frame.length * 8; bit++) {
      const damaged = Buffer.from(frame);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => read(damaged)).toThrow(EventStreamError);
    }
  });

  it.each([
    ['a length of 4 GB', 'ffffffff 00000000'],
    ['headers that are longer than the frame', '00000020 00000100'],
    ['a length below that of an empty frame', '0000000c 00000000'],
  ])('are refused with %s, before anything is waited for', (_, prelude) => {
    const bytes = hex(prelude);
    const whole = frameOf({}, '').subarray(0, 12);
    bytes.copy(whole);
    whole.writeUInt32BE(checksum(bytes), 8);
    expect(() => read(whole)).toThrow(EventStreamError);
  });

  it.each([
    ['a type that is none', hex('0161 0a')],
    ['a name that is cut off', hex('0561')],
    ['a text that is cut off', hex('0161 07 00ff 61')],
  ])('are refused with headers of %s', (_, headers) => {
    expect(() => read(framed(headers))).toThrow(EventStreamError);
  });

  it('that came before a damaged one are passed on', async () => {
    const bytes = Buffer.concat([eventFrame('a', 'first'), Buffer.alloc(16)]);
    const events = asServerEvents(one(bytes), ({ payload }) => payload.toString());
    expect(await events.next()).toEqual({ done: false, value: Buffer.from('first') });
    await expect(events.next()).rejects.toThrow(EventStreamError);
  });
});

async function* one(bytes: Buffer) {
  yield bytes;
}

/** A frame around bytes that stand where its headers belong. */
function framed(headers: Buffer): Buffer {
  const frame = frameOf({}, headers);
  frame.writeUInt32BE(headers.length, 4);
  frame.writeUInt32BE(checksum(frame.subarray(0, 8)), 8);
  frame.writeUInt32BE(checksum(frame.subarray(0, -4)), frame.length - 4);
  return frame;
}
