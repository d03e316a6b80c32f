/** Samples in a second: all that models of speech use. */
export const sample_rate = 16_000;

const header_bytes = 44;
const sample_bytes = 2;

/** Returns the longest recording, in whole seconds, that has at most so many bytes as WAV. */
export function longestSeconds(size_max: number): number {
  return Math.max(0, Math.floor((size_max - header_bytes) / (sample_rate * sample_bytes)));
}

/** Returns these channels, whose samples are from -1 to 1, as WAV of 16 bits and one channel, cut at `seconds_max`. */
export function wavOf(channels: readonly Float32Array[], seconds_max: number): ArrayBuffer {
  const length = Math.min(channels[0]?.length ?? 0, seconds_max * sample_rate);
  const bytes = new ArrayBuffer(header_bytes + length * sample_bytes);
  const view = new DataView(bytes);
  writeHeader(view, length * sample_bytes);
  for (let index = 0; index < length; index += 1) {
    const sum = channels.reduce((all, samples) => all + (samples[index] ?? 0), 0);
    const sample = Math.max(-1, Math.min(1, sum / channels.length));
    view.setInt16(header_bytes + index * sample_bytes, Math.round(sample * 32_767), true);
  }
  return bytes;
}

function writeHeader(view: DataView, data_bytes: number): void {
  view.setUint32(0, 0x52_49_46_46); // RIFF
  view.setUint32(4, header_bytes - 8 + data_bytes, true);
  view.setUint32(8, 0x57_41_56_45); // WAVE
  view.setUint32(12, 0x66_6d_74_20); // its format
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true);
  view.setUint32(24, sample_rate, true);
  view.setUint32(28, sample_rate * sample_bytes, true);
  view.setUint16(32, sample_bytes, true);
  view.setUint16(34, sample_bytes * 8, true);
  view.setUint32(36, 0x64_61_74_61); // its data
  view.setUint32(40, data_bytes, true);
}
