import { expect, test } from 'vitest';
import { probeMedia } from '../helpers/prober.ts';
import * as samples from './samples.ts';

/** Expects the length of all that plays, or a refusal. */
async function expectWholeOrRefused(bytes: Buffer, plays: number): Promise<void> {
  const result = await probeMedia(bytes);
  const refused = !result.ok && result.problem !== '';
  expect(refused ? Infinity : result.ok && result.probe.duration).toBeGreaterThan(plays * 0.98);
}

test.each([
  ['Ogg', () => samples.sampleAudio('ogg', 150), 3],
  ['WebM', () => samples.sampleAudio('webm', 150), 3],
  ['MP4', () => samples.sampleAudio('mp4', 130), 3],
  ['MP4 in fragments', () => samples.sampleAudio('fragments', 130), 3],
  ['MP4 of pictures', () => samples.mp4(96, 64, 30), 1.25],
  ['AAC', () => samples.sampleAudio('aac', 130), 3],
  ['MP3', () => samples.mp3(100), 2.6],
  ['MP3 behind a tag', () => Buffer.concat([samples.id3(300), samples.mp3(100)]), 2.6],
  ['FLAC', () => samples.flac(20), 1.85],
  ['WAV', () => samples.wav(3), 3],
] as const)('two files of %s in one last as long as both, or are refused', async (_, make, once) => {
  const bytes = Buffer.from(await make());
  await expectWholeOrRefused(bytes, once);
  await expectWholeOrRefused(Buffer.concat([bytes, bytes]), 2 * once);
  await expectWholeOrRefused(Buffer.concat(Array.from({ length: 20 }, () => bytes)), 20 * once);
});

test.each([0, 1, 1_000, 8_000, 0x7fff_ffff, 0xffff_ffff])(
  'a WAV that declares %i bytes of audio lasts as long as it plays, or is refused',
  async (length) => {
    const bytes = samples.wav(3);
    bytes.writeUInt32LE(length, 40);
    await expectWholeOrRefused(bytes, 3);
  },
);

test('a FLAC without a number of samples lasts as long as its frames', async () => {
  const bytes = Buffer.from(samples.flac(100));
  bytes.writeUInt8(bytes.readUInt8(21) & 0xf0, 21);
  bytes.writeUInt32BE(0, 22);
  await expectWholeOrRefused(bytes, 9.2);
  bytes.writeUInt32BE(4_096, 22); // or too few
  await expectWholeOrRefused(bytes, 9.2);
});

test('a WebM without a duration lasts as long as its frames', async () => {
  const bytes = await samples.sampleAudio('webm', 150);
  const at = bytes.indexOf(Buffer.of(0x44, 0x89));
  expect(at).toBeGreaterThan(0);
  bytes.writeUInt8(0xec, at + 1); // another element, which says nothing
  bytes.writeUInt8(0x40, at);
  await expectWholeOrRefused(bytes, 2.9);
});
