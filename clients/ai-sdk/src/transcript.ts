import type { TranscriptionModelV4Result } from '@ai-sdk/provider';
import { isObject } from './namespaces.ts';

type Transcript = Pick<TranscriptionModelV4Result, 'text' | 'segments' | 'words' | 'language' | 'durationInSeconds'>;

/** Reads the JSON of a transcript. Every other text is the transcript itself. */
export function readTranscript(text: string): Transcript {
  const whole = parse(text);
  if (!isObject(whole) || typeof whole['text'] !== 'string')
    return { text, segments: [], language: undefined, durationInSeconds: undefined };
  const { language, duration } = whole;
  const words = timed(whole['words'], 'word');
  return {
    text: whole['text'],
    segments: timed(whole['segments'], 'text'),
    ...(words.length > 0 && { words }),
    language: typeof language === 'string' ? codeOf(language) : undefined,
    durationInSeconds: typeof duration === 'number' ? duration : undefined,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function timed(list: unknown, field: string): Transcript['segments'] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((each: unknown) => {
    if (!isObject(each)) return [];
    const { [field]: text, start, end } = each;
    if (typeof text !== 'string' || typeof start !== 'number' || typeof end !== 'number') return [];
    return [{ text, startSecond: start, endSecond: end }];
  });
}

/** OpenAI's `verbose_json` has the English name of a language; the AI SDK wants its code of two letters. */
function codeOf(language: string): string | undefined {
  const name = language.toLowerCase();
  if (/^[a-z]{2}(?:-|$)/.test(name)) return name.slice(0, 2);
  const names = new Intl.DisplayNames(['en'], { type: 'language' });
  return two_letter_codes.find((code) => names.of(code)?.toLowerCase() === name);
}

const letters = [...'abcdefghijklmnopqrstuvwxyz'];
const two_letter_codes = letters.flatMap((first) => letters.map((second) => first + second));
