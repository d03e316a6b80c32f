import { ALL_FORMATS, BufferSource, Input } from 'mediabunny';
import { describe, expect, it } from 'vitest';
import { makeAudio } from '../../../src/providers/sandbox/audio.ts';

const order = { kind: 'audio', text: 'a red bicycle', seed: 0, duration: 5 } as const;

/** Samples of 16 bits. */
function samplesOf(file: Buffer): Int16Array {
  return new Int16Array(new Uint8Array(file.subarray(44)).buffer);
}

/** Root mean square, 1 for full scale. */
function loudness(samples: Int16Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length) / 32_768;
}

describe('makeAudio', () => {
  it('writes the header that fits its samples', () => {
    const file = makeAudio(order);
    expect(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ');
    expect(file.readUInt32LE(4)).toBe(file.length - 8);
    expect(file.readUInt32LE(16)).toBe(16);
    const [format, channels] = [file.readUInt16LE(20), file.readUInt16LE(22)];
    const [rate, bytes_per_second] = [file.readUInt32LE(24), file.readUInt32LE(28)];
    const [bytes_per_sample, bits] = [file.readUInt16LE(32), file.readUInt16LE(34)];
    expect([format, channels, rate, bytes_per_second, bytes_per_sample, bits]).toEqual([1, 1, 44_100, 88_200, 2, 16]);
    expect(file.toString('latin1', 36, 40)).toBe('data');
    expect(file.readUInt32LE(40)).toBe(file.length - 44);
  });

  it.each([1, 2.345, 5, 30])('lasts %d s to the sample', async (duration) => {
    using input = new Input({ formats: ALL_FORMATS, source: new BufferSource(makeAudio({ ...order, duration })) });
    expect(Math.abs((await input.computeDuration()) - duration)).toBeLessThan(1 / 44_100);
  });

  it.each(['a red bicycle', '', 'x', '漢字 🚲', 'word '.repeat(500)])(
    'is audible throughout without clipping: %j',
    (text) => {
      const samples = samplesOf(makeAudio({ ...order, text }));
      expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeLessThan(0.81 * 32_768);
      for (let second = 0; second < 5; second++) {
        expect(loudness(samples.slice(second * 44_100, (second + 1) * 44_100)), `second ${second}`).toBeGreaterThan(
          0.03,
        );
      }
    },
  );

  it('has no offset and neither starts nor ends with a click', () => {
    const samples = samplesOf(makeAudio(order));
    expect(Math.abs(samples.reduce((sum, sample) => sum + sample, 0) / samples.length)).toBeLessThan(30);
    expect(Math.abs(samples[0] ?? 1e9)).toBeLessThan(30);
    expect(Math.abs(samples.at(-1) ?? 1e9)).toBeLessThan(30);
  });

  it('returns the same bytes for the same order and others for another', () => {
    const others = [{ text: 'a blue bicycle' }, { seed: 1 }, { duration: 5.1 }];
    expect(makeAudio(order)).toEqual(makeAudio(order));
    const files = [order, ...others.map((other) => ({ ...order, ...other }))].map((one) =>
      makeAudio(one).toString('base64'),
    );
    expect(new Set(files).size).toBe(4);
  });
});
