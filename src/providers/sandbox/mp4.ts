/** Packs encoded video again: index first, times exact, the same bytes on every day. */
import {
  BufferSource,
  BufferTarget,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  MP4,
  Mp4OutputFormat,
  Output,
} from 'mediabunny';
import { assert } from '../../lib/assert.ts';

/**
 * The video of an MP4 file as a new one that starts with its index (a browser plays it while it
 * loads) and whose frames share `duration_s` evenly, so that its length is exact.
 */
export async function repackVideo(file: Uint8Array, frame_count: number, duration_s: number): Promise<Buffer> {
  using input = new Input({ formats: [MP4], source: new BufferSource(file) });
  const track = await input.getPrimaryVideoTrack();
  const config = await track?.getDecoderConfig();
  assert(track && config, 'the encoder wrote a video track');
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: 'in-memory' }), target });
  const source = new EncodedVideoPacketSource('avc');
  output.addVideoTrack(source);
  await output.start();
  const decoderConfig = {
    ...config,
    colorSpace: { primaries: 'bt709', transfer: 'bt709', matrix: 'bt709', fullRange: false } as const,
  };
  const verified = { verifyKeyPackets: true }; // the encoder's file calls every frame a key frame
  const step_s = duration_s / frame_count;
  let index = 0;
  for await (const packet of new EncodedPacketSink(track).packets(undefined, undefined, verified)) {
    await source.add(packet.clone({ timestamp: index * step_s, duration: step_s }), { decoderConfig });
    index++;
  }
  assert(index === frame_count, `the encoder wrote ${index} of ${frame_count} frames`);
  await output.finalize();
  assert(target.buffer, 'the MP4 file was written');
  const repacked = Buffer.from(target.buffer);
  clearTimes(repacked);
  return repacked;
}

const containers = new Set(['moov', 'trak', 'mdia']);
const headers = new Set(['mvhd', 'tkhd', 'mdhd']);

/** Sets the times of making to zero ("unknown"): they are the only bytes that depend on the clock. */
function clearTimes(boxes: Buffer): void {
  for (let at = 0; at + 8 <= boxes.length;) {
    const size = boxes.readUInt32BE(at);
    const name = boxes.toString('latin1', at + 4, at + 8);
    if (size < 8) return; // a 64-bit or open-ended box: the media data at the end
    const content = boxes.subarray(at + 8, at + size);
    if (containers.has(name)) clearTimes(content);
    if (headers.has(name)) content.fill(0, 4, content.readUInt8(0) === 1 ? 20 : 12); // two times of 64 or 32 bits
    at += size;
  }
}
