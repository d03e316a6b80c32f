/** One event of a stream of server-sent events, with the bytes that it came in. */
export type SseFrame = {
  /** All of its bytes, with the empty line that ends it. */
  raw: Buffer;
  /** The name after `event:`; empty if there is none. */
  event: string;
  /** The text of its data lines, joined by line feeds; undefined for comments and the like. */
  data: string | undefined;
  /** Where the data lines stand in `raw`: from the first byte of the first value to the end of the last. */
  data_from: number;
  data_to: number;
};

/** A line, or an event, that is longer than any honest one. */
export class SseTooLong extends Error {
  override name = 'SseTooLong';
}

const lf = 0x0a;
const cr = 0x0d;
const colon = 0x3a;
const space = 0x20;

type Line = { from: number; to: number };

/**
 * Splits bytes, cut anywhere, into events (the event stream format of the HTML standard): lines end with
 * LF, CRLF or CR, an empty line ends an event. Works on bytes, so no character is ever cut; each byte
 * is looked at once, however small the pieces it comes in.
 */
export class SseSplitter {
  readonly #bytes_max: number;
  #pending: Buffer = Buffer.alloc(0);
  #scanned = 0;
  #line_from = 0;
  #lines: Line[] = [];
  /** The last byte was a CR: an LF right behind it belongs to the same end of line. */
  #after_cr = false;

  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
  }

  /** The events that are complete with these bytes. Throws SseTooLong. */
  push(chunk: Buffer): SseFrame[] {
    const frames: SseFrame[] = [];
    // Of a huge event only the new bytes are scanned; to join them costs one copy per piece of 64 kB.
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    let from = 0;
    let at = this.#scanned;
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === lf && this.#after_cr) {
        this.#after_cr = false;
        if (at === this.#line_from) {
          this.#line_from = at + 1;
          continue;
        }
      }
      if (byte !== lf && byte !== cr) {
        this.#after_cr = false;
        at = nextEnd(bytes, at) - 1;
        continue;
      }
      this.#after_cr = byte === cr;
      const is_empty = at === this.#line_from;
      if (!is_empty) this.#lines.push({ from: this.#line_from - from, to: at - from });
      this.#line_from = at + 1;
      if (!is_empty) continue;
      const to = this.#after_cr && bytes[at + 1] === lf ? at + 2 : at + 1;
      if (this.#lines.length > 0 || to - from > 2) frames.push(frameOf(bytes.subarray(from, to), this.#lines));
      this.#lines = [];
      from = to;
      if (to === at + 2) {
        this.#after_cr = false;
        at += 1;
      }
      this.#line_from = to;
    }
    bytes = bytes.subarray(from);
    this.#pending = bytes;
    this.#scanned = at - from;
    this.#line_from -= from;
    if (bytes.length > this.#bytes_max) throw new SseTooLong(`an event is longer than ${this.#bytes_max} bytes`);
    return frames;
  }

  /** The event that was not ended when the stream was; undefined if there is none. */
  rest(): SseFrame | undefined {
    if (this.#pending.length === 0) return undefined;
    const lines = [...this.#lines];
    if (this.#line_from < this.#pending.length) lines.push({ from: this.#line_from, to: this.#pending.length });
    return frameOf(Buffer.concat([this.#pending, Buffer.from('\n\n')]), lines);
  }
}

/** The next LF or CR at or behind `at`. */
function nextEnd(bytes: Buffer, at: number): number {
  const next_lf = bytes.indexOf(lf, at);
  const end = next_lf === -1 ? bytes.length : next_lf;
  const next_cr = bytes.subarray(at, end).indexOf(cr);
  return next_cr === -1 ? end : at + next_cr;
}

function frameOf(raw: Buffer, lines: readonly Line[]): SseFrame {
  const frame: SseFrame = { raw, event: '', data: undefined, data_from: 0, data_to: 0 };
  for (const line of lines) {
    const found = raw.subarray(line.from, line.to).indexOf(colon);
    const name_to = found === -1 ? line.to : line.from + found;
    if (name_to === line.from) continue; // a comment
    let from = Math.min(name_to + 1, line.to);
    if (raw[from] === space && from < line.to) from += 1;
    const name = raw.toString('latin1', line.from, name_to).replace(/^ï»¿/, ''); // a byte order mark
    if (name === 'event') frame.event = raw.toString('utf8', from, line.to);
    if (name !== 'data') continue;
    const value = raw.toString('utf8', from, line.to);
    if (frame.data === undefined) frame.data_from = from;
    frame.data = frame.data === undefined ? value : `${frame.data}\n${value}`;
    frame.data_to = line.to;
  }
  return frame;
}
