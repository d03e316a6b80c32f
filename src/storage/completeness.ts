import type { ByteSource } from './byte-source.ts';
import type { Container } from './sniff.ts';

/**
 * Returns false if the file ends before its own structure does. Decoders show half an image without a word, so this is
 * asked beside them; it reads headers only. True where a format cannot tell.
 */
export function isComplete(source: ByteSource, container: Container): boolean {
  switch (container) {
    case 'png':
      return isCompletePng(source);
    case 'jpeg':
      return isCompleteJpeg(source);
    case 'avif':
    case 'isobmff':
      return isCompleteIsobmff(source);
    case 'wav':
      return isCompleteWav(source);
    case 'webm':
      return isCompleteWebm(source);
    default:
      return true;
  }
}

/** Chunks of length, type, data, checksum, up to IEND. */
function isCompletePng(source: ByteSource): boolean {
  for (let at = 8; ;) {
    const head = source.read(at, 8);
    if (head.length < 8) return false;
    at += 12 + head.readUInt32BE();
    if (head.toString('latin1', 4) === 'IEND') return at <= source.size_bytes;
  }
}

/** Marker segments up to EOI; after a start of scan, coded data that hides no marker. */
function isCompleteJpeg(source: ByteSource): boolean {
  for (let at: number | undefined = 2; ;) {
    at = nextMarker(source, at);
    if (at === undefined) return false;
    const head = source.read(at, 4);
    if (head[1] === 0xd9) return true;
    if (head.length < 4) return false;
    at += 2 + head.readUInt16BE(2);
  }
}

/** The next 0xFF that begins a segment: neither a stuffed byte, a fill byte nor a restart. */
function nextMarker(source: ByteSource, from: number): number | undefined {
  for (let at = from; at < source.size_bytes;) {
    const block = source.read(at, 2 ** 16);
    for (let i = block.indexOf(0xff); i !== -1; i = block.indexOf(0xff, i + 1)) {
      const code = block[i + 1];
      if (code === undefined) break; // the pair lies across two blocks
      if (code > 0x01 && code < 0xff && !(code >= 0xd0 && code <= 0xd7)) return at + i;
    }
    at += Math.max(1, block.length - 1);
  }
  return undefined;
}

/** Boxes of size and type, end to end; a size of 0 reaches to the end of the file. */
function isCompleteIsobmff(source: ByteSource): boolean {
  let at = 0;
  while (at < source.size_bytes) {
    const head = source.read(at, 16);
    if (head.length < 8) return false;
    const short = head.readUInt32BE();
    if (short === 0) return true;
    if (short === 1 && head.length < 16) return false;
    const length = short === 1 ? Number(head.readBigUInt64BE(8)) : short;
    if (length < 8) return false;
    at += length;
  }
  return at === source.size_bytes;
}

/** Programs that write into a pipe cannot know the length and put the largest number there. */
const wav_unknown_length = 0x7fff_f000;

function isCompleteWav(source: ByteSource): boolean {
  for (let at = 12; ;) {
    const head = source.read(at, 8);
    if (head.length < 8) return false;
    const length = head.readUInt32LE(4);
    at += 8 + length;
    if (head.toString('latin1', 0, 4) === 'data') return at <= source.size_bytes || length >= wav_unknown_length;
    at += length & 1;
  }
}

/** The EBML header, then one Segment, whose length live recorders leave open. */
function isCompleteWebm(source: ByteSource): boolean {
  const header = ebmlLength(source, 4);
  if (header === undefined) return false;
  const segment = 4 + header.size_bytes + header.value;
  const length = ebmlLength(source, segment + 4);
  if (length === undefined) return false;
  const unknown = 2 ** (7 * length.size_bytes) - 1;
  return length.value === unknown || segment + 4 + length.size_bytes + length.value <= source.size_bytes;
}

/** A number whose leading zero bits count the bytes that follow (RFC 8794, 4). */
function ebmlLength(source: ByteSource, at: number): { size_bytes: number; value: number } | undefined {
  const bytes = source.read(at, 8);
  const first = bytes[0] ?? 0;
  const size_bytes = Math.clz32(first) - 23;
  if (first === 0 || bytes.length < size_bytes) return undefined;
  let value = first & (2 ** (8 - size_bytes) - 1);
  for (const byte of bytes.subarray(1, size_bytes)) value = value * 256 + byte;
  return { size_bytes, value };
}
