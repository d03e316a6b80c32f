import fc from 'fast-check';
import { expect, it } from 'vitest';
import { line_bytes_max, parseLine, readLines } from '../../src/batches/input.ts';
import type { NewLine } from '../../src/batches/lines.ts';

const endpoint = '/v1/embeddings';

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const size of sizes) {
    yield bytes.subarray(at, at + size);
    at += size;
  }
  yield bytes.subarray(at);
}

async function read(bytes: Buffer, sizes: readonly number[] = []) {
  const lines: NewLine[] = [];
  const result = await readLines(cut(bytes, sizes), endpoint, async (group) => void lines.push(...group));
  return { result, lines };
}

const line = (custom_id: string, words: string) =>
  JSON.stringify({ custom_id, method: 'POST', url: endpoint, body: { model: 'a', input: words } });

it('a file has the same lines however it is cut, and each is found again by its place', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.constantFrom('\n', '\r\n', '\n\n', '\n  \n')), {
        minLength: 1,
      }),
      fc.array(fc.nat(40)),
      fc.boolean(),
      async (texts, sizes, has_last_break) => {
        const whole = texts.map(([words, end], index) => line(`é${index}`, words) + end).join('');
        const bytes = Buffer.from(has_last_break ? whole : whole.trimEnd());
        const { result, lines } = await read(bytes, sizes);
        expect(result).toEqual({ total: texts.length });
        const line_texts = lines.map(({ start_bytes, size_bytes }) => {
          const parsed = parseLine(bytes.subarray(start_bytes, start_bytes + size_bytes));
          return [parsed?.['custom_id'], parsed?.['body']];
        });
        expect(line_texts).toEqual(texts.map(([words], index) => [`é${index}`, { model: 'a', input: words }]));
      },
    ),
  );
});

it('a line of more bytes than a call may have fails the file, and is not kept in memory', async () => {
  const long = Buffer.alloc(line_bytes_max + 100, 'a');
  let read_bytes = 0;
  async function* endless(): AsyncGenerator<Buffer> {
    yield Buffer.from(`${line('a', 'x')}\n`);
    for (let count = 0; count < 100; count += 1) {
      read_bytes += long.length;
      yield long;
    }
  }
  const result = await readLines(endless(), endpoint, async () => {});
  expect(result).toEqual({
    errors: [{ code: 'line_too_long', message: 'The line has more than 32 MB.', param: null, line: 2 }],
  });
  expect(read_bytes).toBe(long.length);
});

it('a hundred mistakes are named, and then no more of the file is read', async () => {
  const { result } = await read(Buffer.from('{\n'.repeat(1_000)));
  expect('errors' in result && result.errors).toHaveLength(100);
});
