import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dataUrlBytesMax, isDataUrl, readDataUrl, writeDataUrl } from '../../src/lib/data-url.ts';
import { workedMs } from '../helpers/work.ts';

it.each([
  ['data:image/png;base64,AAEC', 'image/png', [0, 1, 2]],
  ['DATA:Image/PNG;BASE64,AAE=', 'image/png', [0, 1]],
  ['data:audio/mpeg;name=a.mp3;charset="utf-8";base64,AA==', 'audio/mpeg', [0]],
  ['data:;base64,AAEC', 'text/plain', [0, 1, 2]],
  ['data:,', 'text/plain', []],
  ['data:image/png;base64,', 'image/png', []],
  ['data:image/svg+xml,%3Csvg%3E', 'image/svg+xml', [...Buffer.from('<svg>')]],
  ['data:application/octet-stream,%00%ff%Fe', 'application/octet-stream', [0, 255, 254]],
  ['data:,a,b;c', 'text/plain', [...Buffer.from('a,b;c')]],
])('the data URL %s is read', (text, content_type, bytes) => {
  expect(readDataUrl(text)).toEqual({ content_type, bytes: Buffer.from(bytes) });
});

describe('a text is not a data URL', () => {
  it.each([
    '',
    'data:',
    'data:image/png',
    'data:image/png;base64',
    'dat:image/png;base64,AAEC',
    ' data:image/png;base64,AAEC',
    'data:png;base64,AAEC',
    'data:image/png/x;base64,AAEC',
    'data:image/png; base64,AAEC',
    'data:image/png;base64;name=x,AA C',
    'data:image/png;base64,AAE',
    'data:image/png;base64,AAEC=',
    'data:image/png;base64,A===',
    'data:image/png;base64,AA==AAEC',
    'data:image/png;base64,AAEC\n',
    'data:image/png;base64,AA-_',
    'data:image/png;base64,AA%3D',
    'data:image/png;base64,AB==', // spare bits
    'data:image/png;base64,====',
    'data:image/png;base64,é===',
    'data:,%',
    'data:,%1',
    'data:,%zz',
    'data:,a b',
    'data:,ä',
    `data:image/png;name=${'x'.repeat(300)};base64,AAEC`,
  ])('if it is %j', (text) => {
    expect(readDataUrl(text)).toBeUndefined();
  });
});

it('a data URL is read as it was written', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (array) => {
      const file = { content_type: 'image/png', bytes: Buffer.from(array) };
      const text = writeDataUrl(file);
      expect(isDataUrl(text)).toBe(true);
      expect(readDataUrl(text)).toEqual(file);
      expect(readDataUrl(text, array.length)).toEqual(file);
      expect(readDataUrl(text, array.length - 1)).toBeUndefined();
      expect(dataUrlBytesMax(text)).toBeGreaterThanOrEqual(array.length);
      expect(dataUrlBytesMax(text)).toBeLessThanOrEqual(array.length + 3);
    }),
  );
});

it('a data URL with every byte as a percent escape is read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (array) => {
      const text = `data:,${[...array].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`;
      expect(readDataUrl(text, array.length)?.bytes).toEqual(Buffer.from(array));
      expect(readDataUrl(text, array.length - 1)).toBeUndefined();
    }),
  );
});

it('long invalid texts are refused at once', () => {
  const long = 'A'.repeat(20_000_000);
  const begun_ms = workedMs();
  expect(readDataUrl(`data:image/png;base64,${long}!AAA`)).toBeUndefined();
  expect(readDataUrl(`data:image/png${long}`)).toBeUndefined();
  expect(readDataUrl(`data:image/png;base64,${long}`, 1_000)).toBeUndefined();
  expect(readDataUrl(`data:,${long}%`)).toBeUndefined();
  expect(workedMs() - begun_ms).toBeLessThan(3_000);
});
