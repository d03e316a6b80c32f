/** Transcripts without ears: what the hint says was said, from the first to the last moment of the recording. */
import { assert } from '../../lib/assert.ts';
import { secondsOf } from '../http/listening.ts';
import type { Prober } from '../../storage/probe.ts';
import { InputRefused, type Json, type TextFile } from '../provider.ts';

const forms = ['text', 'json', 'verbose_json', 'srt', 'vtt'] as const;

export type TranscriptRequest = {
  kind: 'transcript';
  text: string;
  form: (typeof forms)[number];
  /** The length of the recording; decimal text. */
  seconds: string;
  language: string;
};

type Input = { [key: string]: Json };

/** The order of `input`, with `hint` as what is heard. Throws InputRefused if there is no recording. */
export async function readRecording(prober: Prober, input: Input, hint: string): Promise<TranscriptRequest> {
  const seconds = await secondsOf(prober, input['audio']);
  if (seconds === undefined) throw new InputRefused('invalid_request', 'The sandbox needs audio to be a recording.');
  const heard = hint.replaceAll(/\s+/g, ' ').trim();
  const text = heard === '' ? `A recording of ${seconds} seconds.` : heard;
  const { output_format = 'text', language = 'en' } = input;
  return readTranscriptRequest({ text, form: output_format, seconds, language });
}

/** The same from a run's `ref`. */
export function readTranscriptRequest({ text, form, seconds, language }: Input): TranscriptRequest {
  const output_form = forms.find((each) => each === form);
  if (!output_form)
    throw new InputRefused('invalid_request', `The sandbox needs output_format to be one of ${forms.join(', ')}.`);
  assert(typeof text === 'string' && typeof seconds === 'string', 'a transcript has a text and a length');
  assert(typeof language === 'string', 'a transcript has a language');
  return { kind: 'transcript', text, form: output_form, seconds, language };
}

export function writeTranscript({ text, form, seconds, language }: TranscriptRequest): TextFile {
  const end = Number(seconds);
  switch (form) {
    case 'text':
      return { text, content_type: 'text/plain' };
    case 'json':
      return { text: JSON.stringify({ text }), content_type: 'application/json' };
    case 'verbose_json': {
      const heard = { avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };
      const segments = [{ id: 0, seek: 0, start: 0, end, text, tokens: [], temperature: 0, ...heard }];
      const whole = { task: 'transcribe', language, duration: end, text, segments };
      return { text: JSON.stringify(whole), content_type: 'application/json' };
    }
    case 'srt':
      return {
        text: `1\n${timeCode(0, ',')} --> ${timeCode(end, ',')}\n${text}\n`,
        content_type: 'application/x-subrip',
      };
    case 'vtt':
      return { text: `WEBVTT\n\n${timeCode(0, '.')} --> ${timeCode(end, '.')}\n${text}\n`, content_type: 'text/vtt' };
  }
}

/** `00:00:02,500` */
function timeCode(seconds: number, point: string): string {
  const ms = Math.round(seconds * 1000);
  const parts = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  return `${parts.map((part) => String(part).padStart(2, '0')).join(':')}${point}${String(ms % 1000).padStart(3, '0')}`;
}
