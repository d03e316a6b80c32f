import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEmbeddingRequest, renderEmbeddings } from '../../src/styles/embeddings.ts';
import { cutVectors, withVectors } from '../../src/styles/vectors.ts';

const vector = fc.oneof(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), fc.base64String());
const texts = fc.oneof(fc.constantFrom('"embedding":[1]', '\\"embedding":"', 'embedding'), fc.string());
const items = fc.array(
  fc.record({ object: texts, index: fc.nat(), embedding: fc.oneof(vector, fc.jsonValue()), 'embedding"': vector }),
);

describe('vectors of an answer that are read one by one', () => {
  it('are the same bytes once they are put back', () => {
    fc.assert(
      fc.property(items, texts, fc.nat(2), (data, name, indent) => {
        const bytes = Buffer.from(JSON.stringify({ data, [name]: name, embedding: [data.length] }, null, indent));
        const { frame, vectors } = cutVectors(bytes);
        expect(withVectors(frame, vectors)).toEqual(bytes);
        expect(vectors.length).toBeGreaterThan(0);
        expect(JSON.parse(frame.toString())).toHaveProperty('data');
      }),
    );
  });

  it('leave a text as it is that is cut anywhere', () => {
    const bytes = Buffer.from('{"data":[{"embedding":[1,2]},{"embedding" : "AACAPw\\/="}]}');
    for (const at of bytes.keys()) {
      const { frame, vectors } = cutVectors(bytes.subarray(0, at));
      expect(withVectors(frame, vectors)).toEqual(bytes.subarray(0, at));
    }
  });

  it('are an error where one of them is none', async () => {
    const request = readEmbeddingRequest({ model: 'm', input: 'a' });
    for (const [embedding, message] of [
      ['[]', 'A vector of the answer is none'],
      ['[1,]', 'JSON'],
      ['5', 'A vector of the answer is none'],
      ['null', 'A vector of the answer is none'],
      ['{"a":[1]}', 'A vector of the answer is none'],
      ['"AAA"', 'A vector of the answer is cut'],
    ])
      await expect(
        renderEmbeddings(
          request,
          Buffer.from(`{"data":[{"embedding":${embedding}}],"usage":{"prompt_tokens":1}}`),
          'm',
          1,
        ),
      ).rejects.toThrow(message);
  });

  it.each([
    ['numbers as they are', 'float', (of: number[]) => of],
    ['numbers as base64', 'base64', (of: number[]) => of],
    ['base64 as numbers', 'float', (of: number[]) => Buffer.from(new Float32Array(of).buffer).toString('base64')],
  ] as const)('take no turn of 150 ms where a thousand of 1,536 come: %s', async (_, encoding_format, write) => {
    const request = readEmbeddingRequest({
      model: 'm',
      input: Array.from({ length: 1_000 }, () => 'a'),
      encoding_format,
    });
    const numbers = Array.from({ length: 1_536 }, (__, i) => Math.fround(Math.sin(i)));
    const data = Array.from({ length: 1_000 }, (__, index) => ({
      object: 'embedding',
      index,
      embedding: write(numbers),
    }));
    const bytes = Buffer.from(JSON.stringify({ data, model: 'u', usage: { prompt_tokens: 1, total_tokens: 1 } }));
    const rendering = longestTurn(() => renderEmbeddings(request, bytes, 'm', 1));
    const { longest_ms, result } = await rendering;
    expect(longest_ms).toBeLessThan(150);
    const [first] = JSON.parse(result.bytes.toString()).data;
    expect(first.embedding).toEqual(
      encoding_format === 'float' ? numbers : Buffer.from(new Float32Array(numbers).buffer).toString('base64'),
    );
  });
});

/** By CPU, between looks that come as soon as others have their turn. */
async function longestTurn<T>(work: () => Promise<T>): Promise<{ result: T; longest_ms: number }> {
  let longest_ms = 0;
  let before = process.threadCpuUsage();
  const look = () => {
    const { user, system } = process.threadCpuUsage(before);
    longest_ms = Math.max(longest_ms, (user + system) / 1_000);
    before = process.threadCpuUsage();
  };
  const looking = setInterval(look, 1);
  const result = await work();
  clearInterval(looking);
  look();
  return { result, longest_ms };
}
