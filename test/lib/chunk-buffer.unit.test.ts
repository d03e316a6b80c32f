import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readBody } from '../../src/http/body.ts';
import { ChunkBuffer } from '../../src/lib/chunk-buffer.ts';
import { readBytes } from '../../src/lib/read-bytes.ts';

/** Returns the memory that is still in use, once everything else was thrown away. */
function heldMb(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 1e6;
}

const count = 500_000; // pieces of a byte, which took 80 MB and more

it('a chunk buffer returns all pieces in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3 }), { maxLength: 3_000, size: 'max' }), (pieces) => {
      const chunks = new ChunkBuffer();
      for (const piece of pieces) chunks.push(Buffer.from(piece));
      expect(chunks.whole()).toEqual(Buffer.concat(pieces));
      expect(chunks.size_bytes).toBe(Buffer.concat(pieces).length);
    }),
    { numRuns: 20 },
  );
});

it('a response that arrives byte by byte takes no extra memory', async () => {
  const before_mb = heldMb();
  let held_mb = 0;
  const bytes = await readBytes(
    (async function* () {
      for (let i = 0; i < count; i++) yield Buffer.from('x');
      held_mb = heldMb() - before_mb;
    })(),
    count,
  );
  expect(bytes).toHaveLength(count);
  expect(held_mb).toBeLessThan(20);
});

it('a request that arrives byte by byte takes no extra memory', async () => {
  const read = Promise.withResolvers<number>();
  const server = createServer((raw, response) => {
    let arrived_bytes = 0;
    raw.on('data', (chunk: Buffer) => (arrived_bytes += chunk.length));
    const body = readBody(raw, {
      limit_bytes: count,
      idle_ms: 60_000,
      sendContinue: () => {},
      takeMemory: async () => ({ shrink: () => {}, release: () => {} }),
    });
    const before_mb = heldMb();
    const watch = async () => {
      while (arrived_bytes < count - 1) await wait(10);
      read.resolve(heldMb() - before_mb);
      await body;
      response.end();
    };
    watch().catch(read.reject);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  const head = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
  socket.write(head + '1\r\nx\r\n'.repeat(count - 1));
  expect(await read.promise).toBeLessThan(40);
  socket.end('1\r\nx\r\n0\r\n\r\n');
  expect(await text(socket)).toContain('200 OK');
  server.close();
});
