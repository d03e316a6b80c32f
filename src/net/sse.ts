/** One event of a stream of server-sent events, with the bytes that it came in. */
export type SseFrame = {
  /** All of its bytes: empty lines before it, its lines, and the empty line that ends it. */
  raw: Buffer;
  /** The name after `event:`; empty if there is none. */
  event: string;
  /** The text of its data lines, joined by line feeds; undefined for comments and the like. */
  data: string | undefined;
  /** Positions of its data lines in `raw`. */
  data_lines: readonly Line[];
};

export type Line = { from: number; to: number };

/** An event that is longer than any honest one. */
export class SseTooLong extends Error {
  override name = 'SseTooLong';
}

const lf = 0x0a;
const cr = 0x0d;
const colon = 0x3a;
const space = 0x20;
const byte_order_mark = Buffer.from('\ufeff');
/** Each is remembered by its place, which takes more than a short line itself: 10 MB of them took 600. */
const lines_max = 262_144;
const store_bytes_min = 4_096;
/** A larger store is given up after the event that needed it. */
const store_bytes_kept = 131_072;

/**
 * Splits bytes, cut anywhere, into events (the event stream format of the HTML standard): lines end with
 * LF, CRLF or CR, an empty line ends an event. Works on bytes, so no character is ever cut; each byte
 * is looked at once, however small the pieces it comes in. All bytes are in some frame, but for a byte
 * order mark: with a heartbeat in front of it, it would be read as a part of the first line.
 */
export class SseSplitter {
  readonly #bytes_max: number;
  /** Bytes of the event that is not complete. Grows by doubling, so that a byte is copied a few times at most. */
  #store: Buffer = Buffer.alloc(0);
  #stored_bytes = 0;
  /** Places of lines are counted from the first byte of their event. */
  #line_from = 0;
  #lines: Line[] = [];
  /** The last byte was a CR: an LF right after it belongs to the same end of line. */
  #after_cr = false;
  #is_first = true;

  constructor(bytes_max: number) {
    this.#bytes_max = bytes_max;
  }

  /** The events that are complete with these bytes. Throws SseTooLong. */
  push(chunk: Buffer): SseFrame[] {
    const frames: SseFrame[] = [];
    const nextEnd = endFinder(chunk);
    let from = 0;
    let at = 0;
    const place = () => this.#stored_bytes + at - from;
    while (at < chunk.length) {
      if (this.#after_cr) {
        this.#after_cr = false;
        if (chunk[at] === lf) {
          at += 1;
          this.#line_from = place();
          continue;
        }
      }
      at = nextEnd(at);
      if (at === chunk.length) break;
      const line = { from: this.#line_from, to: place() };
      this.#after_cr = chunk[at] === cr;
      at += 1;
      if (line.to > line.from) {
        this.#noteLine(line);
        this.#line_from = place();
        continue;
      }
      if (this.#after_cr && chunk[at] === lf) {
        this.#after_cr = false;
        at += 1;
      }
      this.#line_from = place();
      if (this.#lines.length === 0) continue; // belongs to the event that follows
      frames.push(this.#cut(from === 0 && at === chunk.length ? chunk : chunk.subarray(from, at)));
      from = at;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
    return frames;
  }

  /**
   * The event that was not ended when the stream was, with an end of ours; undefined if it says nothing.
   * Empty lines alone stay as they are.
   */
  rest(): SseFrame | undefined {
    if (this.#stored_bytes === 0) return undefined;
    if (this.#line_from < this.#stored_bytes) this.#lines.push({ from: this.#line_from, to: this.#stored_bytes });
    if (this.#lines.length === 0) return this.#cut(Buffer.alloc(0));
    const frame = this.#cut(Buffer.from('\n\n'));
    return frame.data === undefined || frame.data === '' ? undefined : frame;
  }

  #noteLine(line: Line): void {
    if (this.#lines.length === lines_max) throw new SseTooLong(`an event has more than ${lines_max} lines`);
    this.#lines.push(line);
  }

  #cut(end: Buffer): SseFrame {
    const raw = this.#stored_bytes === 0 ? end : Buffer.concat([this.#store.subarray(0, this.#stored_bytes), end]);
    const lines = this.#lines;
    this.#stored_bytes = 0;
    this.#line_from = 0;
    this.#lines = [];
    if (this.#store.length > store_bytes_kept) this.#store = Buffer.alloc(0);
    const is_first = this.#is_first;
    this.#is_first = false;
    return is_first && startsWithMark(raw) ? frameOf(raw.subarray(3), lines.map(moveBack)) : frameOf(raw, lines);
  }

  #keep(bytes: Buffer): void {
    const needed_bytes = this.#stored_bytes + bytes.length;
    if (needed_bytes > this.#bytes_max) throw new SseTooLong(`an event is longer than ${this.#bytes_max} bytes`);
    if (needed_bytes > this.#store.length) {
      const larger = Buffer.allocUnsafe(Math.max(store_bytes_min, needed_bytes * 2));
      this.#store.copy(larger, 0, 0, this.#stored_bytes);
      this.#store = larger;
    }
    bytes.copy(this.#store, this.#stored_bytes);
    this.#stored_bytes = needed_bytes;
  }
}

function startsWithMark(raw: Buffer): boolean {
  return raw[0] === byte_order_mark[0] && raw[1] === byte_order_mark[1] && raw[2] === byte_order_mark[2];
}

function moveBack({ from, to }: Line): Line {
  return { from: Math.max(0, from - byte_order_mark.length), to: to - byte_order_mark.length };
}

/** Answers the place of the next LF or CR at or after a place, or the end; places asked for must not decrease. */
function endFinder(bytes: Buffer): (at: number) => number {
  const next = (byte: number, at: number) => {
    const index = bytes.indexOf(byte, at);
    return index === -1 ? bytes.length : index;
  };
  let next_lf = -1;
  let next_cr = -1;
  return (at) => {
    if (next_lf < at) next_lf = next(lf, at);
    if (next_cr < at) next_cr = next(cr, at);
    return Math.min(next_lf, next_cr);
  };
}

const event_name = Buffer.from('event');
const data_name = Buffer.from('data');

function frameOf(raw: Buffer, lines: readonly Line[]): SseFrame {
  let event = '';
  let data: string | undefined;
  const data_lines: Line[] = [];
  for (const line of lines) {
    if (isNamed(raw, line, data_name)) {
      const value = valueOf(raw, line, data_name);
      const text = raw.toString('utf8', value.from, value.to);
      data = data === undefined ? text : `${data}\n${text}`;
      data_lines.push(value);
    } else if (isNamed(raw, line, event_name)) {
      const value = valueOf(raw, line, event_name);
      event = raw.toString('utf8', value.from, value.to);
    }
  }
  return { raw, event, data, data_lines };
}

/** Returns true if the name of the line, which ends at its first colon or with the line, is this one. */
function isNamed(raw: Buffer, { from, to }: Line, name: Buffer): boolean {
  const name_to = from + name.length;
  if (name_to > to || (name_to < to && raw[name_to] !== colon)) return false;
  for (let i = 0; i < name.length; i++) if (raw[from + i] !== name[i]) return false;
  return true;
}

/** Returns the part of a line after the name, its colon and one space. */
function valueOf(raw: Buffer, { from, to }: Line, name: Buffer): Line {
  const after = Math.min(from + name.length + 1, to);
  return { from: after < to && raw[after] === space ? after + 1 : after, to };
}
