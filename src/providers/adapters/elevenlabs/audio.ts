import type { JsonObject } from '../../../catalog/model.ts';
import type { Answer } from '../../http/http.ts';
import { InputRefused, NotStarted, type RunRequest, type RunState } from '../../provider.ts';
import { charactersIn, objectIn } from '../../http/reading.ts';
import { creditCost } from '../../http/upstream-cost.ts';
import { wrapInWav } from '../../http/wav.ts';
import { bodyOf, loggingOf, operationOf, type Operation, type Work } from './work.ts';

/** Ten minutes of samples are 58 MB. */
const answer_bytes_max = 134_217_728;

/** Speech, an effect, or music. */
export const makeAudio: Work = async (upstream, run, signal) => {
  const format = formatOf(run);
  const request = {
    path: pathOf(run),
    query: { ...loggingOf(run), ...(format.value !== undefined && { output_format: format.value }) },
    json: audioBodyOf(run),
  };
  const answer = await upstream.call({ method: 'POST', ...request, signal, answer_bytes_max });
  return answer.ok ? readAudio(run, answer, format) : answer;
};

function pathOf(run: RunRequest): string {
  const operation = operationOf(run);
  if (operation !== 'text-to-speech') return `/v1/${operation}`;
  const voice = voiceOf(run);
  const is_voice = voice !== undefined && /^[\w-]{1,64}$/.test(voice);
  if (is_voice) return `/v1/text-to-speech/${voice}`;
  if ('voice_id' in run.input) throw new InputRefused('invalid_request', 'voice_id is not the id of a voice.');
  throw new NotStarted('unavailable', 'neither the input nor the options of the route have a voice_id');
}

/** The voice that speaks; undefined if nobody names one. */
export function voiceOf({ input, options }: RunRequest): string | undefined {
  const voice = input['voice_id'] ?? options['voice_id'];
  return typeof voice === 'string' ? voice : undefined;
}

const settings = ['stability', 'similarity_boost', 'style', 'speed', 'use_speaker_boost'];

function audioBodyOf(run: RunRequest): JsonObject {
  const { duration } = run.input;
  const body = bodyOf(run, ['voice_id', 'output_format', 'duration']);
  const operation = operationOf(run);
  if (operation === 'text-to-speech') return withSettings(body);
  return typeof duration === 'number' ? { ...body, ...lengthOf(operation, duration) } : body;
}

function lengthOf(operation: Operation, duration: number): JsonObject {
  return operation === 'music' ? { music_length_ms: Math.round(duration * 1000) } : { duration_seconds: duration };
}

/** The settings of a voice may be fields of their own. */
function withSettings(body: JsonObject): JsonObject {
  const members = Object.entries(body);
  const voice_settings = Object.fromEntries(members.filter(([name]) => settings.includes(name)));
  const others = Object.fromEntries(members.filter(([name]) => !settings.includes(name)));
  if (Object.keys(voice_settings).length === 0) return body;
  return { ...others, voice_settings: { ...objectIn(body, 'voice_settings'), ...voice_settings } };
}

/** `samples`: what comes has no container. */
type Format = { value?: string; samples?: Parameters<typeof wrapInWav>[1] };

/** Only speech comes as WAV by itself; the others are asked for its samples. */
function formatOf(run: RunRequest): Format {
  const requested = run.input['output_format'] ?? run.options['output_format'];
  if (typeof requested !== 'string') return {};
  const value = operationOf(run) === 'text-to-speech' ? requested : requested.replace(/^wav_/, 'pcm_');
  const [, encoding, rate] = /^(pcm|ulaw|alaw)_(\d{4,6})$/.exec(value) ?? [];
  if (encoding !== 'pcm' && encoding !== 'ulaw' && encoding !== 'alaw') return { value };
  return { value, samples: { encoding, rate: Number(rate) } };
}

function readAudio(run: RunRequest, answer: Answer, { samples }: Format): RunState {
  const { text } = run.input;
  const is_speech = operationOf(run) === 'text-to-speech' && typeof text === 'string';
  const cost = creditCost(answer.headers['character-cost'], run.options);
  return {
    phase: 'done',
    files: [{ bytes: samples ? wrapInWav(answer.bytes, samples) : answer.bytes }],
    ...(is_speech && { units: { character: String(charactersIn(text)) } }),
    ...(cost && { upstream_cost: cost }),
  };
}
