import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from 'mediabunny';
import { describe, expect, it } from 'vitest';
import type { VideoRequest } from '../../../src/providers/sandbox/media-request.ts';
import { makeVideo } from '../../../src/providers/sandbox/video.ts';

const order: VideoRequest = {
  kind: 'video',
  text: 'a red bicycle',
  seed: 0,
  aspect_ratio: 'adaptive',
  resolution: '480p',
  duration: 1,
};

async function inspect(file: Buffer) {
  using input = new Input({ formats: ALL_FORMATS, source: new BufferSource(file) });
  const track = await input.getPrimaryVideoTrack();
  if (!track) throw new Error('no video');
  const times_s: number[] = [];
  const keys_s: number[] = [];
  const claimed_s: number[] = [];
  const sink = new EncodedPacketSink(track);
  for await (const packet of sink.packets(undefined, undefined, { verifyKeyPackets: true })) {
    times_s.push(packet.timestamp);
    if (packet.type === 'key') keys_s.push(packet.timestamp);
  }
  for await (const packet of sink.packets()) if (packet.type === 'key') claimed_s.push(packet.timestamp);
  const duration_s = await input.computeDuration();
  const config = await track.getDecoderConfig();
  return { track, config, duration_s, times_s, keys_s, claimed_s };
}

/** Names of the outermost boxes of an MP4 file, in order. */
function boxes(file: Buffer): string[] {
  const names: string[] = [];
  for (let at = 0; at < file.length; at += Math.max(8, file.readUInt32BE(at)))
    names.push(file.toString('latin1', at + 4, at + 8));
  return names;
}

it('the encoder listens to no failure of the process: a rejection that is handled late ends nothing', async () => {
  const encoder = new URL('../../../src/providers/sandbox/encoder.ts', import.meta.url);
  const program = `
    const { loadEncoder } = await import(${JSON.stringify(encoder.href)});
    loadEncoder();
    const counts = ['uncaughtException', 'unhandledRejection'].map((name) => process.listenerCount(name));
    console.log(counts.join(' '));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  expect(stdout).toBe('0 0\n');
});

describe('makeVideo', () => {
  it.each([
    ['480p', 'adaptive', 854, 480],
    ['480p', '16:9', 854, 480],
    ['480p', '9:16', 480, 854],
    ['480p', '1:1', 480, 480],
    ['720p', '16:9', 1280, 720],
    ['1080p', '9:16', 1080, 1920],
  ] as const)('makes %s %s of %d × %d', async (resolution, aspect_ratio, width, height) => {
    const { track, config } = await inspect(await makeVideo({ ...order, resolution, aspect_ratio }));
    expect([track.displayWidth, track.displayHeight]).toEqual([width, height]);
    expect(config?.codec).toMatch(/^avc1\.42/); // baseline: every browser plays it
    expect(config?.colorSpace).toEqual({ primaries: 'bt709', transfer: 'bt709', matrix: 'bt709', fullRange: false });
  });

  it.each([1, 1.02, 2.5, 3.337])('makes the %d s that were ordered, in even steps', async (duration) => {
    const { duration_s, times_s } = await inspect(await makeVideo({ ...order, duration }));
    expect(Math.abs(duration_s - duration)).toBeLessThan(0.0005);
    const step_s = duration / times_s.length;
    expect(step_s).toBeLessThanOrEqual(1 / 24 + 1e-9);
    times_s.forEach((time_s, i) => expect(Math.abs(time_s - i * step_s)).toBeLessThan(0.0005));
  });

  it('has a key frame each second that is marked as one, and no other frame is', async () => {
    const { keys_s, claimed_s, duration_s } = await inspect(await makeVideo({ ...order, duration: 3.337 }));
    expect(claimed_s).toEqual(keys_s);
    expect(keys_s[0]).toBe(0);
    const gaps = [...keys_s, duration_s].map((time_s, i, all) => time_s - (all[i - 1] ?? 0));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(1.0001);
    expect(keys_s.length).toBeLessThan(6);
  });

  it('has its index before its frames, so that it plays while it loads', async () => {
    expect(boxes(await makeVideo(order))).toEqual(['ftyp', 'moov', 'mdat']);
  });

  it('returns the same bytes on another day, and others for another text', async () => {
    const first = await makeVideo(order);
    const real_now = Date.now;
    Date.now = () => real_now() + 86_400_000;
    try {
      expect(await makeVideo(order)).toEqual(first);
    } finally {
      Date.now = real_now;
    }
    expect(await makeVideo({ ...order, text: 'a blue bicycle' })).not.toEqual(first);
    expect(await makeVideo({ ...order, seed: 1 })).not.toEqual(first);
  });
});
