import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import type { Permit } from '../concurrency/semaphore.ts';
import { ApiError } from '../errors.ts';
import { ChunkBuffer } from '../lib/chunk-buffer.ts';
import { decoderOf } from './decoder.ts';

export const megabyte = 1_000_000;

export const no_bytes = Buffer.alloc(0);

/** Smaller bodies come in one piece with their head, and go as they came. */
const large_bytes = 65_536;

export type BodyReading = {
  limit_bytes: number;
  idle_ms: number;
  sendContinue: () => void;
  /** Waits for the memory of a body that may have so many bytes. Rejects with ApiError where there is none. */
  takeMemory: (bytes: number) => Promise<Permit>;
};

/**
 * Reads the body of `raw`, at most `limit_bytes` once it is decoded. Refuses by the headers alone where they say enough.
 * Rejects with ApiError 413, 415, 429 or 400. After that the rest of the body is still on its way.
 */
export async function readBody(raw: IncomingMessage, reading: BodyReading): Promise<Buffer> {
  const { headers } = raw;
  const { limit_bytes, sendContinue } = reading;
  const length_bytes = Number(headers['content-length'] ?? 0);
  if (length_bytes > limit_bytes) throw tooLarge(limit_bytes);
  if (!announcesBody(headers)) return no_bytes;
  checkType(headers['content-type']);
  const decoder = decoderOf(headers['content-encoding']);
  if (decoder) return receiveEncoded(raw, decoder, reading);
  if (length_bytes > large_bytes) return receiveLarge(raw, length_bytes, reading);
  sendContinue();
  if (headers['content-length'] === undefined) return collect(raw, reading);
  return takeWhole(raw, length_bytes) ?? collect(raw, reading);
}

/** Receives a large body. Nothing of it is read before it has memory, so that the sender waits. */
async function receiveLarge(raw: IncomingMessage, length_bytes: number, reading: BodyReading): Promise<Buffer> {
  const permit = await reading.takeMemory(length_bytes);
  reading.sendContinue();
  return collect(raw, { ...reading, takeMemory: async () => permit });
}

/**
 * Decodes a body as it arrives, in another thread. A few bytes can become as many as a body may have, and a decoder keeps
 * some MB, so the memory for both is taken first.
 */
async function receiveEncoded(raw: IncomingMessage, decoder: Transform, reading: BodyReading): Promise<Buffer> {
  try {
    const permit = await reading.takeMemory(reading.limit_bytes);
    reading.sendContinue();
    raw.pipe(decoder);
    const bytes = await collect(raw, { ...reading, takeMemory: async () => permit }, decoder);
    permit.shrink(bytes.length);
    return bytes;
  } finally {
    raw.unpipe(decoder);
    decoder.destroy();
  }
}

/** All of it, if it is here, as most bodies are that come in one piece with their head. */
function takeWhole(raw: IncomingMessage, length_bytes: number): Buffer | undefined {
  if (raw.readableLength === 0 || raw.readableLength !== length_bytes) return undefined;
  const bytes: unknown = raw.read(length_bytes); // without a length, Node may give the first of several pieces
  raw.resume(); // to its end, after which Node takes it for read
  return Buffer.isBuffer(bytes) ? bytes : no_bytes;
}

function announcesBody(headers: IncomingHttpHeaders): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  return transfer !== undefined || (length !== undefined && Number(length) > 0);
}

function tooLarge(limit_bytes: number): ApiError {
  const shown = limit_bytes < megabyte ? `${limit_bytes / 1_000} kB` : `${limit_bytes / megabyte} MB`;
  return new ApiError('too_large', `The body is larger than ${shown}.`);
}

function checkType(header: string | undefined): void {
  if (header === 'application/json') return;
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const utf8 = charset === undefined || /^"?(utf-?8|us-ascii)"?$/.test(charset);
  if (type === 'application/json' && utf8) return;
  const got = header === undefined ? 'got no content-type' : `got ${JSON.stringify(header.slice(0, 60))}`;
  throw new ApiError('unsupported_media_type', `Send the body as "content-type: application/json" in UTF-8 (${got}).`);
}

/** Waits in the middle where a body of unknown length turns out to be large. `source`: of the bytes of `raw`, or decoded. */
async function collect(
  raw: IncomingMessage,
  { limit_bytes, idle_ms, takeMemory }: BodyReading,
  source: Readable = raw,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks = new ChunkBuffer();
  let memory: Promise<Permit> | undefined;
  const timer = setTimeout(() => reject(new ApiError('invalid_request', 'The body arrives too slowly.')), idle_ms);
  const onData = (chunk: Buffer) => {
    timer.refresh();
    if (chunks.size_bytes + chunk.length > limit_bytes) return reject(tooLarge(limit_bytes));
    chunks.push(chunk);
    if (memory || chunks.size_bytes <= large_bytes) return;
    source.pause();
    memory = takeMemory(limit_bytes);
    memory.then(() => source.resume(), reject);
  };
  // A decoder may end before what it reads: then the rest is something else.
  const onEnd = () => (source === raw || raw.complete ? resolve(chunks.whole()) : onUndecodable());
  const onClose = () => {
    // Comes after every `end` too, and before the promise has gone on.
    if (!raw.complete) reject(new ApiError('invalid_request', 'The connection ended before the body did.'));
  };
  const onUndecodable = () =>
    reject(new ApiError('invalid_request', 'The body is not what its content-encoding says.'));
  const onArrival = () => void timer.refresh();
  if (source !== raw) {
    source.on('error', onUndecodable);
    raw.on('data', onArrival);
  }
  source.on('data', onData).on('end', onEnd);
  raw.on('close', onClose).on('error', onClose);
  try {
    const bytes = await promise;
    (await memory)?.shrink(bytes.length);
    return bytes;
  } finally {
    clearTimeout(timer);
    source.off('data', onData).off('end', onEnd);
    raw.off('data', onArrival).off('close', onClose).off('error', onClose);
    if (!raw.complete) raw.on('error', () => {}); // an abort after our answer is nobody's surprise
  }
}

/** Bytes of a refused body that are discarded before the connection is cut. */
const discard_bytes_max = 64_000_000;

/**
 * Throws away what is left of a body that nobody reads, so that a client which sends first and reads
 * later sees our answer and not a reset connection; cut after `patience_ms` or 64 MB.
 */
export function discardRest(raw: IncomingMessage, patience_ms: number): void {
  if (raw.complete || raw.destroyed) return;
  const cut = () => raw.socket.destroy();
  const timer = setTimeout(cut, patience_ms);
  let left_bytes = discard_bytes_max;
  raw.on('data', (chunk: Buffer) => {
    left_bytes -= chunk.length;
    if (left_bytes < 0) cut();
  });
  raw.on('close', () => clearTimeout(timer));
  raw.on('error', () => {});
  raw.resume();
}
