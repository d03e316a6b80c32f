import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import { SseSplitter } from '../../../net/sse.ts';
import type { Answer } from '../../http/http.ts';
import { charactersIn, textIn } from '../../http/reading.ts';
import { wrapInWav } from '../../http/wav.ts';
import { bodyOf, usageOf, type Work } from './work.ts';
import { readTokens } from './tokens.ts';

/** Four thousand characters are five minutes at most: 15 MB of samples, a third more as base64. */
const answer_bytes_max = 67_108_864;

/** Format of `pcm` here: 24 kHz, 16 bit, mono. */
const samples = { encoding: 'pcm', rate: 24_000 } as const;

/** Speaks `input`. With the option `stream_format: sse` the upstream tells how many tokens that took. */
export const speak: Work = async (upstream, run, signal) => {
  const is_stream = run.options['stream_format'] === 'sse';
  const json = { ...bodyOf(run, ['stream_format']), ...(is_stream && { stream_format: 'sse' }) };
  const answer = await upstream.call({ method: 'POST', path: '/audio/speech', json, signal, answer_bytes_max });
  if (!answer.ok) return answer;
  const { audio, usage } = is_stream ? readStream(answer) : { audio: answer.bytes, usage: undefined };
  const tokens = readTokens('audio', usage, run.options);
  const { input } = run.input;
  const character = String(charactersIn(typeof input === 'string' ? input : ''));
  const bytes = run.input['response_format'] === 'pcm' ? wrapInWav(audio, samples) : audio;
  return { phase: 'done', files: [{ bytes }], ...tokens, units: { character, ...tokens.units } };
};

const frame_bytes_max = answer_bytes_max;

/** The parts of the audio, up to the event that says that these were all. Throws if that never came. */
function readStream(answer: Answer): { audio: Buffer; usage: JsonObject | undefined } {
  const parts: Buffer[] = [];
  let last: JsonObject | undefined;
  for (const { data } of new SseSplitter(frame_bytes_max).push(Buffer.concat([answer.bytes, blank_line]))) {
    const event: Json = data === undefined || data === '[DONE]' ? null : JSON.parse(data);
    if (!isObject(event)) continue;
    if (event['type'] === 'speech.audio.delta') parts.push(Buffer.from(textIn(event, 'audio') ?? '', 'base64'));
    if (event['type'] === 'speech.audio.done') last = event;
  }
  if (!last) throw new Error('the stream of speech ended before its end');
  return { audio: Buffer.concat(parts), usage: usageOf(last) };
}

const blank_line = Buffer.from('\n\n');
