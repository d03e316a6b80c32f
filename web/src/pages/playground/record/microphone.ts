import { sample_rate, wavOf } from './wav.ts';

/** Reasons why there is no recording. */
export type RecordProblem =
  | 'insecure'
  | 'unsupported'
  | 'refused'
  | 'no_device'
  | 'busy'
  | 'empty'
  | 'unreadable'
  | 'no_room';

export class RecordError extends Error {
  override name = 'RecordError';
  readonly problem: RecordProblem;

  constructor(problem: RecordProblem) {
    super(problem);
    this.problem = problem;
  }
}

/** A recording in progress. */
export type Capture = {
  /** Returns the volume of this moment, from 0 to 1. */
  level: () => number;
  /** Ends it and lets go of the microphone. */
  stop: () => void;
  /** The audio as the browser records it, once it has stopped. */
  recorded: Promise<Blob>;
};

/** Asks for the microphone and begins to record. Throws RecordError, and what else keeps it from beginning: then it is off again. */
export async function beginCapture(): Promise<Capture> {
  const stream = await openMicrophone();
  let context: AudioContext | undefined;
  const letGo = () => {
    for (const track of stream.getTracks()) track.stop();
    void context?.close();
  };
  try {
    context = new AudioContext();
    return capture(stream, meterOf(context, stream), letGo);
  } catch (error) {
    letGo();
    throw error;
  }
}

function capture(stream: MediaStream, level: () => number, letGo: () => void): Capture {
  const recorder = new MediaRecorder(stream);
  const parts: Blob[] = [];
  const recorded = new Promise<Blob>((resolve) => {
    recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
    recorder.addEventListener('stop', () => {
      letGo();
      resolve(new Blob(parts, { type: recorder.mimeType }));
    });
  });
  recorder.start();
  // A device that is pulled out ends it, too, with what has come until then.
  const stop = () => recorder.state !== 'inactive' && recorder.stop();
  return { level, stop, recorded };
}

async function openMicrophone(): Promise<MediaStream> {
  // Without https there is no `mediaDevices`, whatever its type says.
  if (!globalThis.isSecureContext || !('mediaDevices' in navigator)) throw new RecordError('insecure');
  if (!('MediaRecorder' in globalThis)) throw new RecordError('unsupported');
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
  } catch (error) {
    throw new RecordError(problemOf(error));
  }
}

function problemOf(error: unknown): RecordProblem {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotFoundError' || name === 'OverconstrainedError') return 'no_device';
  if (name === 'NotReadableError' || name === 'AbortError') return 'busy';
  return name === 'NotAllowedError' || name === 'SecurityError' ? 'refused' : 'unsupported';
}

/** Decibels below full scale that are shown as nothing. */
const quietest_db = -60;

function meterOf(context: AudioContext, stream: MediaStream): () => number {
  const analyser = new AnalyserNode(context, { fftSize: 1_024 });
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  return () => {
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    return Math.max(0, Math.min(1, 1 - (10 * Math.log10(power)) / quietest_db));
  };
}

export type Recording = { file: File; seconds: number };

/** Returns what was recorded as a WAV file, which every API with audio reads. Throws RecordError. */
export async function toWav(recorded: Blob, seconds_max: number, name: string): Promise<Recording> {
  const decoder = new OfflineAudioContext(1, 1, sample_rate); // it resamples what it decodes
  let audio: AudioBuffer;
  try {
    audio = await decoder.decodeAudioData(await recorded.arrayBuffer());
  } catch {
    throw new RecordError(recorded.size === 0 ? 'empty' : 'unreadable');
  }
  if (audio.length === 0) throw new RecordError('empty');
  const channels = Array.from({ length: audio.numberOfChannels }, (_, index) => audio.getChannelData(index));
  const bytes = wavOf(channels, seconds_max);
  return {
    file: new File([bytes], name, { type: 'audio/wav' }),
    seconds: Math.min(audio.duration, seconds_max),
  };
}
