import type { ByteSource } from './byte-source.ts';
import type { Container } from './sniff.ts';

/**
 * Returns false if a second recording follows in the same file: parsers measure the first one, players and upstreams
 * may go on. Streams of bare frames (MP3, AAC) are measured to their end, however many were put together.
 */
export function isSingle(source: ByteSource, container: Container): boolean {
  switch (container) {
    case 'ogg':
      return isSingleOgg(source);
    case 'isobmff':
      return isSingleIsobmff(source);
    case 'wav':
      return isSingleWav(source);
    case 'webm':
      return !holdsAgain(source, ebml_head, 4, (head) => head.includes('\x42\x82', 0, 'latin1'));
    case 'flac':
    case 'id3':
      return !holdsAgain(source, flac_head, source.read(0, 4).equals(flac_head) ? 4 : 0, isStreamInfo, container);
    default:
      return true;
  }
}

const first_page = 0x02;

/** All streams begin before any of them goes on; a page that begins one later is the next link of a chain. */
function isSingleOgg(source: ByteSource): boolean {
  let begun = false;
  for (let at = 0; at < source.size_bytes;) {
    const head = source.read(at, 27);
    if (head.length < 27 || head.toString('latin1', 0, 4) !== 'OggS') return begun && !holds(source, 'OggS', at);
    const is_first = ((head[5] ?? 0) & first_page) !== 0;
    if (begun && is_first) return false;
    begun ||= !is_first;
    const segments = source.read(at + 27, head[26] ?? 0);
    at += 27 + segments.length + segments.reduce((sum, length) => sum + length, 0);
  }
  return true;
}

/** One index: a second one is that of a second file. The boxes have been read before, so they end. */
function isSingleIsobmff(source: ByteSource): boolean {
  let indexes = 0;
  for (let at = 0; at < source.size_bytes;) {
    const head = source.read(at, 16);
    if (head.toString('latin1', 4, 8) === 'moov' && ++indexes > 1) return false;
    const short = head.readUInt32BE();
    if (short === 0) return true;
    at += short === 1 ? Number(head.readBigUInt64BE(8)) : short;
  }
  return true;
}

const wav_unknown_length = 0x7fff_f000;

/** After the audio there are only chunks with a name, up to the end: anything else is audio beyond the length. */
function isSingleWav(source: ByteSource): boolean {
  let data_chunks = 0;
  for (let at = 12; at + 8 <= source.size_bytes;) {
    const head = source.read(at, 8);
    const length = head.readUInt32LE(4);
    const name = head.toString('latin1', 0, 4);
    if (data_chunks > 0 && (!/^[ -~]{4}$/.test(name) || name === 'RIFF' || at + 8 + length > source.size_bytes))
      return false;
    if (name === 'data') {
      data_chunks += 1;
      if (data_chunks > 1 || length === 0) return false;
      if (length >= wav_unknown_length) return true;
    }
    at += 8 + length + (length & 1);
  }
  return true;
}

const ebml_head = Buffer.of(0x1a, 0x45, 0xdf, 0xa3);
const flac_head = Buffer.from('fLaC', 'latin1');

/** The block that every FLAC stream begins with: its kind, and its length of 34. */
function isStreamInfo(head: Buffer): boolean {
  return ((head[4] ?? 1) & 0x7f) === 0 && head[5] === 0 && head[6] === 0 && head[7] === 34;
}

const block_bytes = 2 ** 20;
const head_bytes = 64;

/** Tells whether there is another beginning after `from`; after a tag the first one is that of the file itself. */
function holdsAgain(
  source: ByteSource,
  magic: Buffer,
  from: number,
  isHead: (head: Buffer) => boolean,
  container?: Container,
): boolean {
  let allowed = container === 'id3' ? 1 : 0;
  for (let at = from; at < source.size_bytes; at += block_bytes) {
    const block = source.read(at, block_bytes + magic.length - 1);
    for (let i = block.indexOf(magic); i !== -1; i = block.indexOf(magic, i + 1)) {
      if (isHead(source.read(at + i, head_bytes)) && --allowed < 0) return true;
    }
  }
  return false;
}

function holds(source: ByteSource, text: string, from: number): boolean {
  return holdsAgain(source, Buffer.from(text, 'latin1'), from, () => true);
}
