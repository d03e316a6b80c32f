import {
  AdtsOutputFormat,
  BufferSource,
  BufferTarget,
  Conversion,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedVideoPacketSource,
  Input,
  MovOutputFormat,
  MP4,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from 'mediabunny';
import sharp from 'sharp';
import { newId } from '../../src/lib/ids.ts';
import { loadEncoder } from '../../src/providers/sandbox/encoder.ts';
import { storageKey } from '../../src/storage/key.ts';

// Small real files of every kind that the probe knows.

/** A key that nobody else uses. */
export function newKey(extension: Parameters<typeof storageKey>[0]['extension'] = 'png', index = 0): string {
  return storageKey({ account_id: newId('acct'), owner_id: newId('task'), index, extension });
}

/** A picture with noise in it, so that it has some size. */
export function sampleImage(
  format: 'png' | 'jpeg' | 'webp' | 'gif' | 'avif',
  width: number,
  height: number,
  orientation?: number,
): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const;
  const image = sharp({ create: { width, height, channels: 3, background: 'teal', noise } });
  return image
    .withMetadata(orientation === undefined ? {} : { orientation })
    .toFormat(format)
    .toBuffer();
}

/** Mono, 16 bit: a tone. */
export function wav(duration: number, rate = 8000): Buffer {
  const samples = Math.round(duration * rate);
  const bytes = Buffer.alloc(44 + samples * 2);
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(bytes.length - 8, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(samples * 2, 40);
  for (let i = 0; i < samples; i++) bytes.writeInt16LE(Math.round(8000 * Math.sin(i / 5)), 44 + i * 2);
  return bytes;
}

/** MPEG 1 layer III, 128 kbit/s, 44.1 kHz: silent frames of 417 bytes and 1,152 samples. */
export function mp3(frames: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb_9000);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

/** The same, whose first frame says that there are `declared` of them. */
export function mp3Declaring(declared: number, frames: number): Buffer {
  const bytes = mp3(frames);
  bytes.write('Xing', 36, 'latin1'); // behind the side information of two channels
  bytes.writeUInt32BE(1, 40); // a number of frames follows, and nothing else
  bytes.writeUInt32BE(declared, 44);
  return bytes;
}

/** An empty ID3v2.3 tag of `length` bytes. */
export function id3(length: number): Buffer {
  const tag = Buffer.alloc(10 + length);
  tag.write('ID3\x03', 0, 'latin1');
  tag.writeUInt16BE(((length >> 7) << 8) | (length & 0x7f), 8); // seven bits a byte
  return tag;
}

/** FLAC: 16 bit mono, 44.1 kHz, blocks of 4,096 silent samples. */
export function flac(frames: number): Buffer {
  const info = Buffer.alloc(42);
  info.write('fLaC\x80', 0, 'latin1');
  info.writeUIntBE(34, 5, 3);
  info.writeUInt16BE(4096, 8);
  info.writeUInt16BE(4096, 10);
  // 20 bits of rate, 3 of channels − 1, 5 of bits − 1, 36 of samples
  info.writeBigUInt64BE((44_100n << 44n) | (15n << 36n) | BigInt(frames * 4096), 18);
  return Buffer.concat([info, ...Array.from({ length: frames }, (_, number) => flacFrame(number))]);
}

function flacFrame(number: number): Buffer {
  const head = Buffer.from([0xff, 0xf8, 0xc9, 0x08, number]); // 4,096 samples, 44.1 kHz, mono, 16 bit
  const body = Buffer.from([0x00, 0x00, 0x00]); // one constant subframe: 0
  const frame = Buffer.concat([head, Buffer.from([crc(head, 8, 0x07)]), body]);
  const check = Buffer.alloc(2);
  check.writeUInt16BE(crc(frame, 16, 0x8005));
  return Buffer.concat([frame, check]);
}

function crc(bytes: Buffer, width: number, polynomial: number): number {
  let value = 0;
  for (const byte of bytes) {
    value ^= byte << (width - 8);
    for (let bit = 0; bit < 8; bit++)
      value = (value & (1 << (width - 1)) ? (value << 1) ^ polynomial : value << 1) & (2 ** width - 1);
  }
  return value;
}

/** H.264 by the sandbox's own encoder; `moov` first, as browsers want it. */
export async function mp4(width: number, height: number, frames: number, format = 'mp4'): Promise<Buffer> {
  const raw = await encode(width, height, frames);
  const target = new BufferTarget();
  const output = new Output({
    format:
      format === 'mov'
        ? new MovOutputFormat({ fastStart: 'in-memory' })
        : new Mp4OutputFormat({ fastStart: format === 'fragmented' ? 'fragmented' : 'in-memory' }),
    target,
  });
  const input = new Input({ formats: [MP4], source: new BufferSource(raw) });
  const conversion = await Conversion.init({
    input,
    output,
    ...(format === 'rotated' && { video: { rotate: 90, allowRotationMetadata: true } }),
  });
  await conversion.execute();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** Encodes a video as the encoder writes it by itself: 24 frames a second, `moov` last. */
export async function encode(width: number, height: number, frames: number): Promise<Uint8Array> {
  const encoder = await loadEncoder().createH264MP4Encoder();
  Object.assign(encoder, { width, height, frameRate: 24 });
  encoder.initialize();
  for (let frame = 0; frame < frames; frame++) {
    encoder.addFrameRgba(new Uint8Array(width * height * 4).map((_, i) => (i % 4 === 3 ? 255 : (i >> 4) + frame * 5)));
  }
  encoder.finalize();
  const bytes = encoder.FS.readFile(encoder.outputFilename);
  encoder.delete();
  return bytes;
}

/** Sound frames with nothing in them, in a container; 20 ms (Opus) or 1,024 samples (AAC) each. */
export async function sampleAudio(
  container: 'ogg' | 'webm' | 'mp4' | 'fragments' | 'aac',
  frames: number,
): Promise<Buffer> {
  const formats: Record<typeof container, OutputFormat> = {
    ogg: new OggOutputFormat(),
    webm: new WebMOutputFormat(),
    mp4: new Mp4OutputFormat({ fastStart: 'in-memory' }),
    fragments: new Mp4OutputFormat({ fastStart: 'fragmented', minimumFragmentDuration: 0.5 }),
    aac: new AdtsOutputFormat(),
  };
  const opus = container === 'ogg' || container === 'webm';
  const target = new BufferTarget();
  const output = new Output({ format: formats[container], target });
  const source = new EncodedAudioPacketSource(opus ? 'opus' : 'aac');
  output.addAudioTrack(source);
  await output.start();
  const duration = opus ? 0.02 : 1024 / 44_100;
  for (let i = 0; i < frames; i++) {
    const packet = new EncodedPacket(Uint8Array.of(0xfc, ...Array(80).fill(0)), 'key', i * duration, duration);
    await source.add(packet, { decoderConfig: opus ? opus_config : aac_config });
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

const opus_config: AudioDecoderConfig = {
  codec: 'opus',
  numberOfChannels: 2,
  sampleRate: 48_000,
  description: Buffer.from('OpusHead\x01\x02\x00\x00\x80\xbb\x00\x00\x00\x00\x00', 'latin1'),
};

const aac_config: AudioDecoderConfig = {
  codec: 'mp4a.40.2',
  numberOfChannels: 2,
  sampleRate: 44_100,
  description: Uint8Array.of(0x12, 0x10),
};

/** A VP8 key frame's header and no picture behind it: enough for a container. */
export async function webm(width: number, height: number, frames: number): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format: new WebMOutputFormat(), target });
  const source = new EncodedVideoPacketSource('vp8');
  output.addVideoTrack(source);
  await output.start();
  for (let i = 0; i < frames; i++) {
    const bytes = Uint8Array.of(0x10, 0, 0, 0x9d, 0x01, 0x2a, width & 255, width >> 8, height & 255, height >> 8, 0, 0);
    const packet = new EncodedPacket(bytes, 'key', i / 10, 0.1);
    await source.add(packet, { decoderConfig: { codec: 'vp8', codedWidth: width, codedHeight: height } });
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}
