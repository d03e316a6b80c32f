import type { Answer } from '../../http/http.ts';
import { secondsOf } from '../../http/listening.ts';
import { appendFields, appendFile } from '../../http/multipart.ts';
import type { RunRequest, RunState } from '../../provider.ts';
import { textIn } from '../../http/reading.ts';
import { decimalOf } from '../../http/upstream-cost.ts';
import type { Prober } from '../../../storage/probe.ts';
import { bodyOf, usageOf, type Work } from './work.ts';
import { readTokens } from './tokens.ts';

/** Words of ten hours with their times. */
const answer_bytes_max = 67_108_864;

/** Writes down what is said in `file`. */
export const transcribe =
  (prober: Prober): Work =>
  async (upstream, run, signal) => {
    const format = formatOf(run);
    const form = new FormData();
    appendFields(form, bodyOf(run, ['file', 'stream', 'response_format']));
    form.append('response_format', format.format);
    appendFile(form, 'file', 'file', run.input['file']);
    const answer = await upstream.call({
      method: 'POST',
      path: '/audio/transcriptions',
      form,
      signal,
      answer_bytes_max,
    });
    if (!answer.ok) return answer;
    const { content_type } = format;
    const result =
      content_type === undefined ? readJson(run, answer) : { files: [{ text: answer.text(), content_type }] };
    const second = result.units?.second ?? (await secondsOf(prober, run.input['file']));
    return { phase: 'done', ...result, units: { ...result.units, ...(second !== undefined && { second }) } };
  };

type Format = { format: string; content_type?: string };

/** Bare words are asked for as JSON, which is the only form of some models, and tells what it cost. */
function formatOf({ input }: RunRequest): Format {
  const format = input['response_format'] ?? 'text';
  if (format === 'srt') return { format: 'srt', content_type: 'application/x-subrip' };
  if (format === 'vtt') return { format: 'vtt', content_type: 'text/vtt' };
  return { format: typeof format === 'string' && format !== 'text' ? format : 'json' };
}

type Transcript = Omit<RunState & { phase: 'done' }, 'phase'>;

function readJson({ input, options }: RunRequest, answer: Answer): Transcript {
  const transcript = answer.object();
  const is_bare = (input['response_format'] ?? 'text') === 'text';
  const file = is_bare
    ? { text: textIn(transcript, 'text') ?? '', content_type: 'text/plain' }
    : { text: JSON.stringify(transcript), content_type: 'application/json' };
  const tokens = readTokens('text', usageOf(transcript), options);
  const second = decimalOf(transcript['duration']);
  return { files: [file], ...tokens, units: { ...(second !== undefined && { second }), ...tokens.units } };
}
