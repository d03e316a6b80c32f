import { describe, expect, it, vi } from 'vitest';
import { addPreview, previewOf, previews_max } from '../../web/src/pages/playground/form/previews.ts';
import { clockText } from '../../web/src/pages/playground/record/clock.ts';
import { longestSeconds, sample_rate, wavOf } from '../../web/src/pages/playground/record/wav.ts';

describe('a recording as WAV', () => {
  it('has a header of 16 bits and one channel at 16 kHz, and the mean of its channels', () => {
    const left = Float32Array.of(0, 1, -1, 0.5, 2);
    const right = Float32Array.of(0, 1, -1, -0.5, 2);
    const bytes = Buffer.from(wavOf([left, right], 10));
    expect(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ');
    expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8);
    expect([20, 22, 32, 34].map((at) => bytes.readUInt16LE(at))).toEqual([1, 1, 2, 16]);
    expect([bytes.readUInt32LE(24), bytes.readUInt32LE(28)]).toEqual([16_000, 32_000]);
    expect(bytes.toString('latin1', 36, 40)).toBe('data');
    expect(bytes.readUInt32LE(40)).toBe(10);
    const samples = [0, 1, 2, 3, 4].map((index) => bytes.readInt16LE(44 + 2 * index));
    expect(samples).toEqual([0, 32_767, -32_767, 0, 32_767]);
  });

  it('ends at the longest length, whose size is the one that was asked for', () => {
    const size_max = 100_000;
    const seconds = longestSeconds(size_max);
    const bytes = wavOf([new Float32Array(10 * sample_rate)], seconds);
    expect(seconds).toBe(3);
    expect(bytes.byteLength).toBe(44 + 3 * 32_000);
    expect(bytes.byteLength).toBeLessThanOrEqual(size_max);
  });

  it.each([
    [-5, 0],
    [0, 0],
    [32_043, 0],
    [32_044, 1],
    [20_000_000, 624],
  ])('of at most %i bytes has %i seconds', (size_max, seconds) => {
    expect(longestSeconds(size_max)).toBe(seconds);
  });
});

it.each([
  [0, '0:00'],
  [9.9, '0:09'],
  [65, '1:05'],
  [600, '10:00'],
])('a clock after %d seconds says %s', (seconds, text) => {
  expect(clockText(seconds)).toBe(text);
});

it('keeps the previews of the files that were uploaded last, and lets go of the others', () => {
  const revoke = vi.spyOn(URL, 'revokeObjectURL');
  const files = Array.from({ length: previews_max + 2 }, (_, index) => new File(['x'], `${index}.wav`));
  for (const [index, file] of files.entries()) addPreview(`file_${index}`, file);
  expect([previewOf('file_1'), previewOf('file_2')?.name]).toEqual([undefined, '2.wav']);
  expect(revoke).toHaveBeenCalledTimes(2);
  revoke.mockRestore();
});
