import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InputRefused } from '../../../src/providers/provider.ts';
import { readMediaRequest } from '../../../src/providers/sandbox/media-request.ts';

describe('readOrder', () => {
  it('fills in what the input leaves out', () => {
    expect(readMediaRequest('image', {}, 'x')).toEqual({
      kind: 'image',
      text: 'x',
      seed: 0,
      width: 768,
      height: 768,
      n: 1,
    });
    expect(readMediaRequest('audio', {}, 'x')).toEqual({ kind: 'audio', text: 'x', seed: 0, duration: 5 });
    expect(readMediaRequest('video', { prompt: 'y' }, 'x')).toEqual({
      kind: 'video',
      text: 'x',
      seed: 0,
      aspect_ratio: 'adaptive',
      resolution: '480p',
      duration: 5,
    });
  });

  it.each([
    ['image', { width: 15 }, 'width'],
    ['image', { height: 2049 }, 'height'],
    ['image', { width: 100.5 }, 'width'],
    ['image', { n: 0 }, 'n'],
    ['image', { n: '2' }, 'n'],
    ['image', { seed: -1 }, 'seed'],
    ['video', { duration: 10.001 }, 'duration'],
    ['video', { duration: 1e308 }, 'duration'],
    ['video', { resolution: '4k' }, 'resolution'],
    ['video', { aspect_ratio: '4:3' }, 'aspect_ratio'],
    ['audio', { duration: 0.5 }, 'duration'],
    ['audio', { duration: true }, 'duration'],
  ] as const)('refuses for %s %j and names %s', (kind, input, field) => {
    expect(() => readMediaRequest(kind, input, 'x')).toThrow(InputRefused);
    expect(() => readMediaRequest(kind, input, 'x')).toThrow(` ${field} `);
  });

  it.each([
    ['tabs\t and\nlines ', 'tabs and lines'],
    ['N\u0000UL', 'N UL'],
    ['half \ud83d pair', 'half \ufffd pair'],
    ['Z\u0301o\u0301łw', 'Źółw'],
    ['zero\u200bwidth\u202e', 'zerowidth'],
    [' \u0007 ', ''],
  ])('turns %j into %j', (text, expected) => {
    expect(readMediaRequest('audio', {}, text).text).toBe(expected);
  });

  it('keeps texts that any database stores, and reads its own orders', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.constantFrom('image', 'video', 'audio'),
        (text, kind) => {
          const order = readMediaRequest(kind, {}, text);
          expect(order.text.isWellFormed()).toBe(true);
          // oxlint-disable-next-line no-control-regex
          expect(order.text).not.toMatch(/[\u0000-\u001f\u007f]/);
          expect(readMediaRequest(kind, JSON.parse(JSON.stringify(order)), order.text)).toEqual(order);
        },
      ),
    );
  });

  it('limits the size of an order', () => {
    expect(readMediaRequest('image', {}, 'long '.repeat(1_000_000)).text.length).toBeLessThanOrEqual(10_000);
  });
});
