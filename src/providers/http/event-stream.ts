import { crc32 } from 'node:zlib';

/**
 * Messages of `application/vnd.amazon.eventstream`, as AWS frames its streams: lengths and a checksum, headers, a payload,
 * a checksum of all (smithy.io, "Amazon Event Stream Specification", November 2026).
 */

/** One message; headers that are no texts have no place here, nobody sends any. */
export type EventMessage = { headers: Readonly<Record<string, string>>; payload: Buffer };

/** Bytes that are no such message. */
export class EventStreamError extends Error {
  override name = 'EventStreamError';
}

const prelude_bytes = 12;
const checksum_bytes = 4;
/** 16 MiB of payload and 128 KiB of headers. */
const message_bytes_max = 16_777_216 + 131_072 + prelude_bytes + checksum_bytes;

const store_bytes_min = 4_096;

/** Splits bytes, cut anywhere, into messages; each byte is copied a few times at most, however small the pieces are. */
export class EventStreamSplitter {
  /** Bytes of the message that is not complete. Grows by doubling. */
  #store: Buffer = Buffer.alloc(0);
  #stored_bytes = 0;
  /** Less than this is no whole message. */
  #needed_bytes = prelude_bytes;

  /** The messages that are complete with these bytes. Throws EventStreamError; those before it have come out. */
  *push(chunk: Buffer): Generator<EventMessage, void> {
    const is_alone = this.#stored_bytes === 0 && chunk.length >= this.#needed_bytes;
    if (!is_alone) this.#keep(chunk);
    let bytes = is_alone ? chunk : this.#store.subarray(0, this.#stored_bytes);
    if (bytes.length < this.#needed_bytes) return;
    for (let length = lengthOf(bytes); length <= bytes.length; length = lengthOf(bytes)) {
      const message = readMessage(bytes.subarray(0, length));
      bytes = bytes.subarray(length);
      yield message;
    }
    this.#needed_bytes = lengthOf(bytes);
    this.#store = Buffer.from(bytes); // a copy: the messages are parts of the bytes before
    this.#stored_bytes = bytes.length;
  }

  #keep(bytes: Buffer): void {
    const size_bytes = this.#stored_bytes + bytes.length;
    if (size_bytes > this.#store.length) {
      const larger = Buffer.allocUnsafe(Math.max(store_bytes_min, size_bytes * 2));
      this.#store.copy(larger, 0, 0, this.#stored_bytes);
      this.#store = larger;
    }
    bytes.copy(this.#store, this.#stored_bytes);
    this.#stored_bytes = size_bytes;
  }
}

/** The length of the message that begins here; without its prelude, that of the prelude. */
function lengthOf(bytes: Buffer): number {
  if (bytes.length < prelude_bytes) return prelude_bytes;
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8))
    throw new EventStreamError('The head of a frame is damaged.');
  const length = bytes.readUInt32BE(0);
  const headers_length = bytes.readUInt32BE(4);
  const is_possible = headers_length + prelude_bytes + checksum_bytes <= length && length <= message_bytes_max;
  if (!is_possible) throw new EventStreamError(`A frame of ${length} bytes is none.`);
  return length;
}

function readMessage(bytes: Buffer): EventMessage {
  const end = bytes.length - checksum_bytes;
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw new EventStreamError('A frame is damaged.');
  const payload_from = prelude_bytes + bytes.readUInt32BE(4);
  return {
    headers: readHeaders(bytes.subarray(prelude_bytes, payload_from)),
    payload: bytes.subarray(payload_from, end),
  };
}

/** Bytes of the values of each type; two of them begin with their length. */
const value_bytes: readonly number[] = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];
const text_type = 7;

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  try {
    for (let at = 0; at < bytes.length;) {
      const name_to = at + 1 + bytes.readUInt8(at);
      const name = bytes.toString('utf8', at + 1, name_to);
      const type = bytes.readUInt8(name_to);
      const fixed = value_bytes[type];
      if (fixed === undefined) throw new EventStreamError(`A header has the type ${type}, which is none.`);
      const from = name_to + (fixed === -1 ? 3 : 1);
      const to = from + (fixed === -1 ? bytes.readUInt16BE(name_to + 1) : fixed);
      if (to > bytes.length) throw new EventStreamError('A header is longer than its frame.');
      if (type === text_type) headers[name] = bytes.toString('utf8', from, to);
      at = to;
    }
  } catch (error) {
    if (error instanceof RangeError) throw new EventStreamError('The headers of a frame are cut off.');
    throw error;
  }
  return headers;
}

/** Writes messages as the events of a stream that the rest of the service reads; empty texts are left out. */
export async function* asServerEvents(
  body: AsyncIterable<Buffer>,
  render: (message: EventMessage) => string,
): AsyncGenerator<Buffer, void> {
  const splitter = new EventStreamSplitter();
  for await (const chunk of body) {
    let text = '';
    let problem: unknown;
    try {
      for (const message of splitter.push(chunk)) text += render(message);
    } catch (error) {
      problem = error;
    }
    if (text !== '') yield Buffer.from(text);
    if (problem !== undefined) throw problem;
  }
}
