import fc from 'fast-check';
import { heavySize, heavyText } from './heavy-values.ts';
import type { Operation } from './operations.ts';
import type { HostileRequest } from './requests.ts';

type Sized = (size: number, text: string) => { mark: string; parts: string[] };

const disposition = 'content-disposition: form-data';

const shapes: readonly Sized[] = [
  (size) => ({
    mark: 'x',
    parts: Array.from(
      { length: Math.min(20_000, size / 60) },
      (_, index) => `${disposition}; name="f${index}"\r\n\r\nv`,
    ),
  }),
  (size) => ({
    mark: 'x',
    parts: Array.from(
      { length: 63 },
      (_, index) => `${disposition}; name="f${index}[]"\r\n\r\n${'v'.repeat(Math.min(60_000, size / 63))}`,
    ),
  }),
  (size) => ({
    mark: 'x',
    parts: Array.from({ length: Math.min(20_000, size / 60) }, () => `${disposition}; name="a[]"\r\n\r\nv`),
  }),
  (size) => ({ mark: 'x', parts: [`${disposition}; name="file"; filename="${'a\\"'.repeat(size / 3)}"\r\n\r\nv`] }),
  (size) => ({
    mark: 'x',
    parts: [`${disposition}; name="file"; filename="${'../'.repeat(Math.min(1_300, size / 3))}a"\r\n\r\nv`],
  }),
  (size) => ({
    mark: 'x',
    parts: [`${disposition}${'; a=b'.repeat(Math.min(700, size / 5))}; name="file"; filename="a"\r\n\r\nv`],
  }),
  (size) => ({ mark: 'x', parts: [`${disposition}${';'.repeat(Math.min(4_000, size))} name="file"\r\n\r\nv`] }),
  (size) => ({
    mark: 'x',
    parts: [`${'x: y\r\n'.repeat(size / 6)}${disposition}; name="file"; filename="a"\r\n\r\nv`],
  }),
  (size) => ({
    mark: 'x',
    parts: [`${disposition}; name="file"; filename="a.png"\r\n\r\n${'\r\n--'.repeat(size / 4)}`],
  }),
  (size) => ({
    mark: 'a'.repeat(69),
    parts: [`${disposition}; name="file"; filename="a.png"\r\n\r\n${`\r\n--${'a'.repeat(68)}`.repeat(size / 72)}`],
  }),
  (size) => ({
    mark: '-'.repeat(70),
    parts: [`${disposition}; name="file"; filename="a.png"\r\n\r\n${'-'.repeat(size)}`],
  }),
  (size) => ({ mark: 'x', parts: [`${disposition}; name="file"; filename="a.png"\r\n\r\n${'\r'.repeat(size)}`] }),
  (size, text) => ({
    mark: 'x',
    parts: [
      `${disposition}; name="purpose"\r\n\r\n${text}`,
      `${disposition}; name="file"; filename="a.txt"\r\n\r\n${text}`,
      `${disposition}; name="model"\r\n\r\n${text}`,
    ],
  }),
  (size, text) => ({
    mark: 'x',
    parts: [
      `${disposition}; name="model"\r\n\r\nsandbox/edit`,
      `${disposition}; name="prompt"\r\n\r\n${text}`,
      `${disposition}; name="image[]"; filename="a.png"\r\n\r\n${text}`,
    ],
  }),
  (size) => ({ mark: 'x', parts: ['\r\n'.repeat(size / 2)] }),
  (size) => ({
    mark: 'x',
    parts: [
      `${disposition}; name*=UTF-8''${'%41'.repeat(Math.min(1_300, size / 3))}; filename*=utf-8''${'%ff'.repeat(100)}\r\n\r\nv`,
    ],
  }),
];

/** Forms with many parts, many headers of a part, and contents that look like boundaries. */
export function heavyForm(operation: Operation): fc.Arbitrary<HostileRequest> {
  return fc.tuple(fc.constantFrom(...shapes), heavySize, heavyText).chain(([write, size, text]) => {
    const bounded = Math.min(size, 2_000_000);
    const { mark, parts } = write(bounded, text(Math.min(bounded, 60_000)).text);
    const whole = parts.map((part) => `--${mark}\r\n${part}\r\n`).join('') + `--${mark}--\r\n`;
    return operation.send(whole, `multipart/form-data; boundary=${mark}`);
  });
}
