import type { JsonObject } from '../../../catalog/model.ts';
import { secondsOf } from '../../http/listening.ts';
import { appendFields, appendFile } from '../../http/multipart.ts';
import type { RunFile, RunRequest, RunState } from '../../provider.ts';
import { objectsIn, textIn } from '../../http/reading.ts';
import { creditCost, decimalOf } from '../../http/upstream-cost.ts';
import type { Prober } from '../../../storage/probe.ts';
import { bodyOf, loggingOf, type Work } from './work.ts';

/** Words of ten hours with their times. */
const answer_bytes_max = 134_217_728;

/** Writes down what is said in `file`. */
export const transcribe =
  (prober: Prober): Work =>
  async (upstream, run, signal) => {
    const form = new FormData();
    appendFields(form, bodyOf(run, ['file', 'format', 'webhook']), (name) => name);
    if (isSubtitle(run)) form.append('additional_formats', JSON.stringify([{ format: 'srt' }]));
    appendFile(form, 'file', 'file', run.input['file']);
    const request = { path: '/v1/speech-to-text', query: loggingOf(run), form };
    const answer = await upstream.call({ method: 'POST', ...request, signal, answer_bytes_max });
    if (!answer.ok) return answer;
    return readTranscript(prober, run, answer.object(), answer.headers['character-cost']);
  };

function isSubtitle({ input }: RunRequest): boolean {
  return input['format'] === 'srt' || input['format'] === 'vtt';
}

async function readTranscript(
  prober: Prober,
  run: RunRequest,
  transcript: JsonObject,
  credits: string | undefined,
): Promise<RunState> {
  const seconds = decimalOf(transcript['audio_duration_secs']) ?? (await secondsOf(prober, run.input['file']));
  const cost = creditCost(credits, run.options);
  return {
    phase: 'done',
    files: filesOf(run, transcript),
    ...(seconds !== undefined && { units: { second: seconds } }),
    ...(cost && { upstream_cost: cost }),
  };
}

/** None where the upstream has left out the subtitles that it was asked for. */
function filesOf(run: RunRequest, transcript: JsonObject): RunFile[] {
  const { format } = run.input;
  if (format === 'json') return [{ text: JSON.stringify(transcript), content_type: 'application/json' }];
  if (!isSubtitle(run)) return [{ text: wordsOf(transcript), content_type: 'text/plain' }];
  const srt = subtitlesIn(transcript);
  if (srt === undefined) return [];
  return format === 'srt'
    ? [{ text: srt, content_type: 'application/x-subrip' }]
    : [{ text: toVtt(srt), content_type: 'text/vtt' }];
}

/** Channels that were listened to apart have a transcript each. */
function wordsOf(transcript: JsonObject): string {
  const parts = [transcript, ...objectsIn(transcript, 'transcripts')];
  return parts.flatMap((part) => textIn(part, 'text') ?? []).join('\n');
}

function subtitlesIn(transcript: JsonObject): string | undefined {
  const subtitles = objectsIn(transcript, 'additional_formats').find((one) => one['requested_format'] === 'srt');
  const content = subtitles && textIn(subtitles, 'content');
  if (content === undefined || subtitles?.['is_base64_encoded'] !== true) return content;
  return Buffer.from(content, 'base64').toString('utf8');
}

/** The same with points in its times, and a first line: it makes SRT, but no WebVTT. */
function toVtt(srt: string): string {
  return `WEBVTT\n\n${srt.replaceAll(/(\d\d:\d\d:\d\d),(\d{3})/g, '$1.$2')}`;
}
