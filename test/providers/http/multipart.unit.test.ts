import { describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../../src/lib/data-url.ts';
import { appendFields, appendFile } from '../../../src/providers/http/multipart.ts';
import { InputRefused } from '../../../src/providers/provider.ts';
import { charactersIn, countIn, objectIn, objectsIn, textIn, textsOf } from '../../../src/providers/http/reading.ts';

describe('a form for an upstream', () => {
  it.each([
    ['image/png', 'image.png'],
    ['audio/mpeg', 'audio.mp3'],
    ['audio/x-wav', 'audio.wav'],
    ['audio/vnd.wave', 'audio.wav'],
    ['audio/x-m4a', 'audio.m4a'],
    ['audio/mp4', 'audio.mp4'],
    ['video/quicktime', 'video.mov'],
    ['image/svg+xml', 'image.svg'],
  ])('names a file of %s %s', (content_type, name) => {
    const form = new FormData();
    appendFile(form, 'file', 'file', writeDataUrl({ content_type, bytes: Buffer.from('x') }));
    expect(form.get('file')).toMatchObject({ name, type: content_type, size: 1 });
  });

  it('treats no other value as a file', () => {
    for (const value of ['file_1', 'https://example.com/a.png', 7, null, undefined, 'data:,%'])
      expect(() => appendFile(new FormData(), 'file', 'file', value)).toThrow(InputRefused);
  });

  it('has its fields as texts, its lists by their members, and its objects as JSON', () => {
    const form = new FormData();
    appendFields(form, { text: 'a', number: 0.5, yes: true, none: null, list: ['b', 2], object: { c: 1 } });
    expect([...form]).toEqual([
      ['text', 'a'],
      ['number', '0.5'],
      ['yes', 'true'],
      ['list[]', 'b'],
      ['list[]', '2'],
      ['object', '{"c":1}'],
    ]);
  });
});

describe('fields of a response', () => {
  const answer = { text: 'a', empty: '', count: 3, half: 0.5, object: { a: 1 }, list: [{ b: 1 }, 2, null], none: null };

  it('have their expected types or count as absent', () => {
    expect([textIn(answer, 'text'), textIn(answer, 'empty'), textIn(answer, 'count')]).toEqual([
      'a',
      undefined,
      undefined,
    ]);
    expect([countIn(answer, 'count'), countIn(answer, 'half'), countIn({ x: -1 }, 'x')]).toEqual([
      3,
      undefined,
      undefined,
    ]);
    expect(countIn({ x: 1e15 }, 'x')).toBeUndefined();
    expect([objectIn(answer, 'object'), objectIn(answer, 'none'), objectIn(answer, 'list')]).toEqual([
      { a: 1 },
      {},
      {},
    ]);
    expect([objectsIn(answer, 'list'), objectsIn(answer, 'object')]).toEqual([[{ b: 1 }], []]);
    expect([textsOf('a'), textsOf(['a', 1, 'b']), textsOf(null), textsOf(undefined)]).toEqual([
      ['a'],
      ['a', 'b'],
      [],
      [],
    ]);
  });

  it('are counted by code points', () => {
    expect(['', 'abc', 'Zażółć', '🦊🦊'].map(charactersIn)).toEqual([0, 3, 6, 2]);
  });
});
