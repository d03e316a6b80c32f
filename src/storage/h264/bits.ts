/** The stream ends where something must follow, or has a value that the standard does not allow. */
export class BadStream extends Error {
  override name = 'BadStream';
}

/** Takes out the bytes that keep start codes from occurring inside a unit (ITU-T H.264, 7.4.1). */
export function unescape(unit: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(unit.length);
  let length = 0;
  let zeros = 0;
  for (const byte of unit) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    bytes[length++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return bytes.subarray(0, length);
}

/** Reads bits from the highest to the lowest. After the end it reads zeros, for a few bytes. */
export class BitReader {
  readonly bytes: Uint8Array;
  /** In bits. */
  position = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  bit(): number {
    const byte = this.bytes[this.position >> 3] ?? 0;
    const bit = (byte >> (7 - (this.position & 7))) & 1;
    this.position += 1;
    return bit;
  }

  flag(): boolean {
    return this.bit() === 1;
  }

  /** At most 24 bits, without moving on. */
  peek(count: number): number {
    const at = this.position >> 3;
    const { bytes } = this;
    const word =
      (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>>
      0;
    return ((word << (this.position & 7)) >>> 0) >>> (32 - count);
  }

  bits(count: number): number {
    let value = 0;
    for (let left = count; left > 0;) {
      const step = Math.min(left, 16);
      value = value * 2 ** step + this.peek(step);
      this.position += step;
      left -= step;
    }
    return value;
  }

  /** The number of zeros before the next one, which is read too. */
  zeros(): number {
    let zeros = 0;
    while (this.bit() === 0) if (++zeros > 32) throw new BadStream('a number is too long');
    return zeros;
  }

  /** Exp-Golomb code of a number from 0 on. */
  unsigned(): number {
    const zeros = this.zeros();
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** The same for a number with a sign. */
  signed(): number {
    const code = this.unsigned();
    return code % 2 === 0 ? -code / 2 : (code + 1) / 2;
  }

  align(): void {
    this.position = (this.position + 7) & ~7;
  }

  /** So many whole bytes, from the next one that begins. */
  samples(count: number): Uint8Array {
    this.align();
    const at = this.position >> 3;
    this.position += count * 8;
    this.check();
    return this.bytes.subarray(at, at + count);
  }

  /** Throws when more has been read than there is. */
  check(): void {
    if (this.position > this.bytes.length * 8 + 32) throw new BadStream('the frame is cut off');
  }

  /** Tells whether there is more before the bit that ends a unit. */
  hasMore(): boolean {
    let last = this.bytes.length - 1;
    while (last >= 0 && this.bytes[last] === 0) last -= 1;
    const byte = this.bytes[last] ?? 0;
    const trailing = 31 - Math.clz32(byte & -byte);
    return this.position < last * 8 + 7 - trailing;
  }
}
