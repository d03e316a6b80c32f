/** A short melody as a WAV file: the letters of the text choose the notes, its hash the rest. */
import type { AudioRequest } from './media-request.ts';
import { type Chance, chanceFrom } from './seed.ts';

const rate = 44_100; // samples per second, mono, 16 bits
const peak = 0.8; // of full scale, so that nothing clips

/** The WAV file of an order, exactly `duration` long to a sample. Same order, same bytes. */
export function makeAudio(request: AudioRequest): Buffer {
  const samples = new Float64Array(Math.round(request.duration * rate));
  const chance = chanceFrom(JSON.stringify([request.kind, request.text, request.seed, request.duration]));
  playMelody(samples, [...request.text], chance);
  addEcho(samples, Math.round(rate * 0.27), 0.3);
  fadeEnds(samples);
  return wavFile(samples);
}

const scales: readonly [readonly number[], ...(readonly number[])[]] = [
  [0, 2, 4, 7, 9],
  [0, 3, 5, 7, 10],
  [0, 2, 3, 7, 8],
];

/** One note per letter over a bass note per bar; a pentatonic scale has no wrong neighbours. */
function playMelody(samples: Float64Array, letters: string[], chance: Chance): void {
  const scale = chance.pick(scales);
  const root = chance.pick([196, 220, 246.94, 261.63]); // hertz: G3, A3, B3, C4
  const beat = Math.round(rate * chance.pick([0.22, 0.25, 0.3]));
  const pitch = (degree: number) => {
    const octave = Math.floor(degree / scale.length);
    return root * 2 ** (octave + (scale[degree - octave * scale.length] ?? 0) / 12);
  };
  for (let step = 0, start = 0; start < samples.length; step++, start += beat) {
    if (step % 8 === 0) addNote(samples, start, beat * 10, pitch(chance.pick([0, 3, 1, 4])) / 2, 0.5);
    const letter = letters[step % Math.max(1, letters.length)]?.codePointAt(0) ?? step;
    if (letter === 0x20) continue; // a space rests, the echo carries on
    const degree = (letter + Math.floor(chance.between(0, 3))) % (2 * scale.length);
    addNote(samples, start, beat * 4, pitch(degree), step % 2 === 0 ? 0.6 : 0.45);
  }
}

/** A plucked string: three partials, the higher ones die sooner. */
function addNote(samples: Float64Array, start: number, length: number, hertz: number, loudness: number): void {
  const end = Math.min(samples.length, start + length);
  const attack = rate * 0.008;
  for (const [partial, share, decay] of [
    [1, 1, 3.2],
    [2, 0.35, 5],
    [3, 0.15, 8],
  ] as const) {
    const turn = (2 * Math.PI * hertz * partial) / rate;
    for (let i = start; i < end; i++) {
      const age = i - start;
      const swell = Math.min(1, age / attack) * (1 - age / length);
      samples[i] =
        (samples[i] ?? 0) + loudness * share * swell * Math.exp((-decay * age) / rate) * Math.sin(turn * age);
    }
  }
}

function addEcho(samples: Float64Array, delay: number, share: number): void {
  for (let i = delay; i < samples.length; i++) samples[i] = (samples[i] ?? 0) + share * (samples[i - delay] ?? 0);
}

/** 20 ms at both ends, so that the file neither starts nor stops with a click. */
function fadeEnds(samples: Float64Array): void {
  const length = Math.round(rate * 0.02);
  for (let i = 0; i < length; i++) {
    const last = samples.length - 1 - i;
    samples[i] = ((samples[i] ?? 0) * i) / length;
    samples[last] = ((samples[last] ?? 0) * i) / length;
  }
}

/** The canonical 44-byte header and 16-bit samples scaled to the peak. */
function wavFile(samples: Float64Array): Buffer {
  const size_bytes = samples.length * 2;
  const file = Buffer.alloc(44 + size_bytes);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(36 + size_bytes, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16); // length of the format part
  file.writeUInt16LE(1, 20); // PCM
  file.writeUInt16LE(1, 22); // mono
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(rate * 2, 28); // bytes per second
  file.writeUInt16LE(2, 32); // bytes per sample
  file.writeUInt16LE(16, 34); // bits per sample
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(size_bytes, 40);
  const loudest = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-9);
  const scale = (peak * 32_767) / loudest;
  samples.forEach((sample, i) => file.writeInt16LE(Math.round(sample * scale), 44 + 2 * i));
  return file;
}
