import {
  ADTS,
  BufferSource,
  CustomSource,
  EncodedPacketSink,
  FLAC,
  Input,
  type InputFormat,
  type InputTrack,
  MP3,
  MP4,
  OGG,
  QTFF,
  type Source,
  WAVE,
  WEBM,
} from 'mediabunny';
import sharp from 'sharp';
import { read_bytes_max, ReadTooLarge, type ByteSource } from './byte-source.ts';
import { isComplete } from './completeness.ts';
import { mediaType, type Extension } from './media-types.ts';
import { failed, type Probe, type ProbeResult } from './probe-result.ts';
import { isSingle } from './single.ts';
import { sniff, sniff_bytes, type Container } from './sniff.ts';

/** A side longer than this is no image that anybody can open: VP8, WebP and JPEG end here or below. */
const side_max = 65_535;

/** A day. Longer ones are numbers made up in a header. */
const duration_max = 86_400;

// One library per process, and its cache keeps removed files open and answers by their path alone.
sharp.cache(false);

type Measurement = { done: ProbeResult; spent: boolean };

/** Reads headers and indexes, decodes nothing. Hostile files may loop or eat memory: see probe.ts. */
export async function measure(source: ByteSource): Promise<Measurement> {
  let spent = false;
  try {
    const container = inspect(source);
    if (typeof container !== 'string') return { done: container, spent };
    const image_format = image_formats[container];
    spent = !image_format;
    const measures = image_format ? await measureImage(source, image_format) : await measureTracks(source, container);
    const { content_type } = mediaType(measures.extension);
    const probe = { ...measures, content_type, size_bytes: source.size_bytes };
    return { done: { ok: true, probe }, spent: false };
  } catch (error) {
    const reason = error instanceof ReadTooLarge ? 'too_large' : 'damaged';
    return { done: failed(reason, error instanceof Error ? error.message : String(error)), spent };
  }
}

/** The container, if the file is one and whole. */
function inspect(source: ByteSource): Container | ProbeResult {
  if (source.size_bytes === 0) return failed('empty', 'The file is empty.');
  const container = sniff(source.read(0, sniff_bytes));
  if (!container) return failed('unrecognized', 'The file is of no known media type.');
  if (!isComplete(source, container)) return failed('truncated', `The ${container} file is cut off.`);
  if (isSingle(source, container)) return container;
  return failed('damaged', `The ${container} file holds more audio than its header says, or several files in one.`);
}

type Measures = Omit<Probe, 'content_type' | 'size_bytes'>;

type ImageFormat = { extension: Extension; format: string; pixels_per_byte_max: number };

/**
 * The format that sharp must report for a container (`heif` is its name for AVIF's family), and the best
 * possible compression: deflate 1,032 bytes into one, at one bit a pixel; JPEG one bit a block. A header with
 * more pixels lies. The others store a plain area in no bytes at all.
 */
export const image_formats: Partial<Record<Container, ImageFormat>> = {
  png: { extension: 'png', format: 'png', pixels_per_byte_max: 8 * 1032 },
  jpeg: { extension: 'jpg', format: 'jpeg', pixels_per_byte_max: 8 * 64 },
  gif: { extension: 'gif', format: 'gif', pixels_per_byte_max: Infinity },
  webp: { extension: 'webp', format: 'webp', pixels_per_byte_max: Infinity },
  avif: { extension: 'avif', format: 'heif', pixels_per_byte_max: Infinity },
};

async function measureImage(source: ByteSource, image_format: ImageFormat): Promise<Measures> {
  const metadata = await sharp(bytesOf(source)).metadata();
  if (metadata.format !== image_format.format)
    throw new Error(`This is ${metadata.format}, not ${image_format.format}.`);
  if (metadata.width * metadata.height > source.size_bytes * image_format.pixels_per_byte_max) {
    throw new Error(`${source.size_bytes} bytes cannot hold ${metadata.width} × ${metadata.height} pixels.`);
  }
  // As it is shown: EXIF orientations 5 to 8 lie on their side.
  const { width, height } = metadata.autoOrient;
  return {
    type: 'image',
    extension: image_format.extension,
    width: checkedSide(width),
    height: checkedSide(height),
  };
}

const track_formats: Partial<Record<Container, InputFormat[]>> = {
  isobmff: [MP4, QTFF],
  webm: [WEBM],
  wav: [WAVE],
  ogg: [OGG],
  flac: [FLAC],
  mp3: [MP3],
  aac: [ADTS],
  id3: [FLAC, MP3, ADTS],
};

/** Opens a file of video or audio. */
export function openTracks(source: ByteSource, container: Container): Input {
  const formats = track_formats[container] ?? [];
  return new Input({ formats, source: mediaSource(source, formats) });
}

async function measureTracks(source: ByteSource, container: Container): Promise<Measures> {
  using input = openTracks(source, container);
  const videos = await input.getVideoTracks();
  const audios = await input.getAudioTracks();
  const [video] = videos;
  if (!video && !audios[0]) throw new Error('There is neither a video nor an audio track.');
  const format = await input.getFormat();
  const duration = await measureDuration(input, [...videos, ...audios], source.size_bytes);
  if (!video) return { type: 'audio', extension: audioExtension(format), duration };
  return {
    type: 'video',
    extension: format === QTFF ? 'mov' : format === WEBM ? 'webm' : 'mp4',
    width: checkedSide(await video.getDisplayWidth()),
    height: checkedSide(await video.getDisplayHeight()),
    duration,
  };
}

/** These have no index: their length is found by walking from frame to frame. */
const indexless: readonly InputFormat[] = [MP3, ADTS, FLAC];

/**
 * Up to this size such files are held in memory as a whole: an hour of MP3 (58 MB) takes 0.1 s
 * then, against 4 s frame by frame from the disk. Larger ones are believed what they declare. Of an
 * image this much is enough, too: its size stands at its beginning.
 */
const walked_bytes_max = 64 * 2 ** 20;

/** Returns the bytes of a file, or its beginning if it is large. */
export function bytesOf(source: ByteSource): Buffer {
  const end = Math.min(source.size_bytes, walked_bytes_max);
  const parts: Buffer[] = [];
  for (let at = 0; at < end; at += read_bytes_max) parts.push(source.read(at, Math.min(read_bytes_max, end - at)));
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}

function mediaSource(source: ByteSource, formats: readonly InputFormat[]): Source {
  const walked = formats.some((format) => indexless.includes(format));
  if (walked && source.size_bytes <= walked_bytes_max) return new BufferSource(bytesOf(source));
  return new CustomSource({
    getSize: () => source.size_bytes,
    read: (start, end) => source.read(start, end - start),
    prefetchProfile: 'fileSystem',
    handleUnhandledError: () => {}, // a prefetch that nobody waits for
  });
}

function audioExtension(format: InputFormat): Extension {
  if (format === WAVE) return 'wav';
  if (format === OGG) return 'ogg';
  if (format === FLAC) return 'flac';
  if (format === MP3) return 'mp3';
  if (format === ADTS) return 'aac';
  return format === WEBM ? 'weba' : 'm4a';
}

/** From the first moment of the earliest track to the last of the longest, to the millisecond. */
async function measureDuration(input: Input, tracks: InputTrack[], size_bytes: number): Promise<number> {
  const format = await input.getFormat();
  const declared = indexless.includes(format) && size_bytes > walked_bytes_max;
  const end = (declared && (await declaredEnd(input, tracks, size_bytes))) || (await findEnd(input, tracks, format));
  const start = Math.max(0, await input.getFirstTimestamp(tracks));
  const duration = Math.round((end - start) * 1000) / 1000;
  if (!(duration > 0 && duration <= duration_max)) throw new Error(`It cannot last ${duration} seconds.`);
  return duration;
}

/** MP3 ends at 320 kbit/s; an image among the tags may be some of the file. */
const mp3_bits_max = 400_000;

/**
 * Returns the header's duration, unless the file has more bytes than such a short recording could fill: the
 * charge depends on it.
 */
async function declaredEnd(input: Input, tracks: InputTrack[], size_bytes: number): Promise<number | null> {
  const end = await input.getDurationFromMetadata(tracks);
  if (!end) return end;
  const plain = await Promise.all(tracks.map(plainBits)); // as if nothing were compressed
  const bits_max = (await input.getFormat()) === MP3 ? mp3_bits_max : plain.reduce((sum, bits) => sum + bits, 0);
  if (size_bytes * 8 > end * bits_max) throw new Error(`It has too many bytes to last only ${end} seconds.`);
  return end;
}

async function plainBits(track: InputTrack): Promise<number> {
  if (!track.isAudioTrack()) return 0;
  return (await track.getSampleRate()) * (await track.getNumberOfChannels()) * 32;
}

/** By the last frames. Their bytes must be there: an index may promise more than is in the file. */
async function findEnd(input: Input, tracks: InputTrack[], format: InputFormat): Promise<number> {
  for (const track of tracks) {
    const last = await new EncodedPacketSink(track).getPacket(Infinity);
    if (!last) throw new Error('A track has no frames in this file.');
  }
  const end = await input.computeDuration(tracks);
  if (format !== WEBM && format !== FLAC) return end;
  // WebM may leave out how long its last frame lasts, and a silent last frame of FLAC is too short
  // to be found. Both tell their whole length: believed for one frame, at 4 a second or more.
  const declared = (await input.getDurationFromMetadata(tracks)) ?? end;
  return declared > end && declared - end <= 0.25 ? declared : end;
}

function checkedSide(pixels: number): number {
  const whole = Math.round(pixels);
  if (!(whole >= 1 && whole <= side_max)) throw new Error(`An image cannot measure ${pixels} pixels.`);
  return whole;
}
