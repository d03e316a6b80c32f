/**
 * The container of a file by its first bytes. `id3` is a tag that MP3, FLAC and AAC files may start with; only
 * the frames after it tell which.
 */
export type Container =
  | 'png'
  | 'jpeg'
  | 'gif'
  | 'webp'
  | 'avif'
  | 'isobmff'
  | 'webm'
  | 'wav'
  | 'ogg'
  | 'flac'
  | 'mp3'
  | 'aac'
  | 'id3';

/** Number of bytes that `sniff` needs. */
export const sniff_bytes = 256;

/** The container by its magic bytes, never by a name or a declared type; undefined if unknown. */
export function sniff(head: Buffer): Container | undefined {
  const ascii = head.toString('latin1');
  if (ascii.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (ascii.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (ascii.startsWith('GIF87a') || ascii.startsWith('GIF89a')) return 'gif';
  if (/^RIFF[^]{4}WEBP/.test(ascii)) return 'webp';
  if (/^(RIFF|RF64)[^]{4}WAVE/.test(ascii)) return 'wav';
  if (ascii.startsWith('\x1aE\xdf\xa3')) return ascii.includes('\x42\x82\x84webm') ? 'webm' : undefined;
  if (ascii.startsWith('OggS')) return 'ogg';
  if (ascii.startsWith('fLaC')) return 'flac';
  if (ascii.startsWith('ID3')) return 'id3';
  if (ascii.slice(4, 8) === 'ftyp') return sniffBrands(ascii);
  return sniffFrame(head);
}

/** ISO base media files tell by their brands whether they are an image or have tracks. */
function sniffBrands(ascii: string): Container | undefined {
  const length = Buffer.from(ascii.slice(0, 4), 'latin1').readUInt32BE();
  const brands = [ascii.slice(8, 12)];
  for (let at = 16; at + 4 <= Math.min(length, ascii.length); at += 4) brands.push(ascii.slice(at, at + 4));
  if (brands.includes('avif') || brands.includes('avis')) return 'avif';
  if (brands.some((brand) => ['heic', 'heix', 'hevc', 'mif1', 'msf1'].includes(brand))) return undefined;
  return 'isobmff';
}

/** Streams of bare frames: 12 bits of sync, then the layer, which is 0 for AAC only. */
function sniffFrame(head: Buffer): Container | undefined {
  const [first = 0, second = 0] = head;
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined;
  if ((second & 0xf6) === 0xf0) return 'aac';
  return (second & 0x06) === 0 ? undefined : 'mp3';
}
