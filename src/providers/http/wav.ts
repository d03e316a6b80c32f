/** Samples without a container, as speech models make them: mono, the low byte first. */
export type Samples = { encoding: keyof typeof encodings; rate: number };

/** Their format tags (Microsoft's `mmreg.h`) and sizes. */
const encodings = {
  pcm: { tag: 1, bytes_per_sample: 2 },
  alaw: { tag: 6, bytes_per_sample: 1 },
  ulaw: { tag: 7, bytes_per_sample: 1 },
} as const;

/** The same samples in a file that says what they are: nothing can play them without that. */
export function wrapInWav(samples: Buffer, { encoding, rate }: Samples): Buffer {
  const { tag, bytes_per_sample } = encodings[encoding];
  const size_bytes = samples.length - (samples.length % bytes_per_sample);
  const format = Buffer.alloc(18);
  format.writeUInt16LE(tag, 0);
  format.writeUInt16LE(1, 2);
  format.writeUInt32LE(rate, 4);
  format.writeUInt32LE(rate * bytes_per_sample, 8);
  format.writeUInt16LE(bytes_per_sample, 12);
  format.writeUInt16LE(bytes_per_sample * 8, 14);
  const count = Buffer.alloc(4);
  count.writeUInt32LE(size_bytes / bytes_per_sample);
  const data = chunk('data', samples.subarray(0, size_bytes));
  const chunks =
    tag === 1 ? [chunk('fmt ', format.subarray(0, 16)), data] : [chunk('fmt ', format), chunk('fact', count), data];
  return chunk('RIFF', Buffer.concat([Buffer.from('WAVE', 'latin1'), ...chunks]));
}

function chunk(name: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, 'latin1');
  head.writeUInt32LE(content.length, 4);
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)]);
}
