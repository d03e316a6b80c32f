import fc from 'fast-check';
import { nastyText } from './nasty.ts';

/** One pixel of PNG: something that a service for pictures must take. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const boundary = fc.constantFrom('x', 'x', '----WebKitFormBoundary0', '-', "a'()+_,-./:=?b", 'y'.repeat(70));

const names = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('file', 'file', 'purpose', 'expires_after[seconds]', 'expires_after[anchor]'),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom('model', 'prompt', 'size', 'image', 'image[]', 'mask', 'input_reference[image_url]'),
  },
  { weight: 1, arbitrary: nastyText },
);

const values = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('user_data', '3600', 'created_at').map((text) => Buffer.from(text)) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('sandbox/edit', 'sandbox/transcript', '16x16').map((text) => Buffer.from(text)),
  },
  { weight: 4, arbitrary: fc.constant(pixel) },
  { weight: 2, arbitrary: nastyText.map((text) => Buffer.from(text)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\r\n--', '--x', '\r\n--x', '--x--\r\n', '\r\n\r\n').map((text) => Buffer.from(text)),
  },
);

/** In the header of a part, without the characters that would end it: those have a place of their own. */
const plain = (text: string) => text.replaceAll(/["\r\n]/g, '');

const part = fc
  .record({
    name: names,
    filename: fc.option(fc.oneof(fc.constant('a.png'), nastyText), { nil: undefined }),
    type: fc.constantFrom(
      '',
      'content-type: image/png\r\n',
      'content-type: text/html; charset=utf-16\r\n',
      'x: y\r\n'.repeat(40),
      'broken\r\n',
    ),
    value: values,
  })
  .map(({ name, filename, type, value }) => {
    const file = filename === undefined ? '' : `; filename="${plain(filename)}"`;
    const head = `content-disposition: form-data; name="${plain(name)}"${file}\r\n${type}\r\n`;
    return Buffer.concat([Buffer.from(head), value, Buffer.from('\r\n')]);
  });

/** Faults of the whole form: an end too early or too late, a piece that is missing or there twice. */
const wholes = fc.oneof(
  { weight: 5, arbitrary: fc.constant((whole: Buffer) => whole) },
  {
    weight: 2,
    arbitrary: fc.nat(100).map((share) => (whole: Buffer) => whole.subarray(0, (whole.length * share) / 100)),
  },
  { weight: 1, arbitrary: fc.nat(100).map((share) => (whole: Buffer) => whole.subarray((whole.length * share) / 100)) },
  { weight: 1, arbitrary: fc.constant((whole: Buffer) => Buffer.concat([whole, whole])) },
  {
    weight: 1,
    arbitrary: fc.constant((whole: Buffer) => Buffer.from(whole.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')),
  },
);

const field = (name: string, value: string | Buffer, filename = '') =>
  Buffer.concat([
    Buffer.from(`content-disposition: form-data; name="${name}"${filename}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);

/** As the paths want them that take forms. */
const fitting = {
  upload: [field('file', pixel, '; filename="a.png"')],
  edit: [
    field('model', 'sandbox/edit'),
    field('prompt', 'x'),
    field('size', '16x16'),
    field('image[]', pixel, '; filename="a.png"'),
  ],
};

/** Forms with files: most as they should be, some not. */
export const forms: fc.Arbitrary<{ type: string; bytes: Buffer }> = fc
  .record({
    boundary,
    parts: fc.array(part, { maxLength: 5 }),
    good: fc.boolean(),
    kind: fc.constantFrom('upload' as const, 'edit' as const),
    change: wholes,
  })
  .map(({ boundary: mark, parts, good, kind, change }) => {
    const all = (good ? fitting[kind] : parts).flatMap((each) => [Buffer.from(`--${mark}\r\n`), each]);
    const whole = Buffer.concat([...all, Buffer.from(`--${mark}--\r\n`)]);
    return { type: `multipart/form-data; boundary="${mark}"`, bytes: Buffer.from(change(whole)) };
  });
