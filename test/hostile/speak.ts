import { connect } from 'node:net';
import { cutReplies, type Reply } from './wire.ts';

/** Longer than anything a test waits for on purpose, and than a machine stands still. */
const patience_ms = 120_000;

export type Spoken = { replies: Reply[]; text: string; elapsed_ms: number };

/**
 * Writes bytes as they are to a connection of its own, and tells what came back until the service closed
 * it or `enough` answers were there. Rejects if neither happens.
 */
export async function speak(
  port: number,
  parts: readonly (string | Buffer)[],
  options: { half_closed?: boolean; enough?: number; pause_ms?: number } = {},
): Promise<Spoken> {
  const started_ms = performance.now();
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error(`neither an end nor an answer: ${text()}`)), patience_ms);
  const text = () => Buffer.concat(chunks).toString('latin1');
  socket.on('data', (chunk) => {
    chunks.push(Buffer.from(chunk));
    if (options.enough !== undefined && cutReplies(Buffer.concat(chunks)).length >= options.enough) resolve();
  });
  socket.on('error', () => {});
  socket.on('end', () => resolve());
  socket.on('close', () => resolve());
  try {
    for (const part of parts) {
      socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
      if (options.pause_ms !== undefined) await new Promise((next) => setTimeout(next, options.pause_ms));
    }
    if (options.half_closed) socket.end();
    await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
  return { replies: cutReplies(Buffer.concat(chunks)), text: text(), elapsed_ms: performance.now() - started_ms };
}
