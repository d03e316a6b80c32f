import { describe, expect, it } from 'vitest';
import { wrapInWav } from '../../../src/providers/http/wav.ts';
import { probeMedia } from '../../helpers/prober.ts';
import { wav } from '../../storage/samples.ts';

describe('samples in a WAV file', () => {
  it('have the same header as ever', () => {
    expect(wrapInWav(wav(0.25, 24_000).subarray(44), { encoding: 'pcm', rate: 24_000 })).toEqual(wav(0.25, 24_000));
  });

  it.each([
    ['pcm', 16_000, 32_000],
    ['pcm', 44_100, 88_200],
    ['ulaw', 8_000, 8_000],
    ['alaw', 8_000, 8_000],
  ] as const)('of %s at %i last a second', async (encoding, rate, size_bytes) => {
    const file = wrapInWav(Buffer.alloc(size_bytes, 0x55), { encoding, rate });
    const probe = { type: 'audio', content_type: 'audio/wav', duration: 1 };
    expect(await probeMedia(file)).toMatchObject({ ok: true, probe });
  });

  it('lose the last one if it is cut', () => {
    const file = wrapInWav(Buffer.from([1, 2, 3]), { encoding: 'pcm', rate: 8_000 });
    expect([file.length, file.readUInt32LE(40)]).toEqual([46, 2]);
    const odd = wrapInWav(Buffer.from([1, 2, 3]), { encoding: 'ulaw', rate: 8_000 });
    expect([odd.length % 2, odd.readUInt32LE(4)]).toEqual([0, odd.length - 8]);
  });
});
