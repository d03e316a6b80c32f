import { multistream, pino, type Level, type Logger } from 'pino';
import { readableLine } from '../lib/log-lines.ts';
import { activeTraceparent } from '../tracing/tracer.ts';
import { openLogFile } from './log-file.ts';

/** JSON lines for programs, or lines for a person who reads along. */
export type LogFormat = { readonly format: 'json' | 'text'; readonly colors: boolean };

/** The file has a line for each request, however few stderr has. */
const file_level: Level = 'info';

const levels: readonly Level[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

/** Logs to stderr, since stdout belongs to what a person is told, and to `file`, from which `medley logs` reads. */
export function openLog(
  level: string,
  { format, colors }: LogFormat = { format: 'json', colors: false },
  file?: string,
): Logger {
  const options = { level, serializers: { err: leanError }, mixin: traceOfLine };
  const to_stderr =
    format === 'json'
      ? pino.destination(2)
      : { write: (line: string) => void process.stderr.write(readableLine(line, { colors })) };
  const stderr_level = levels.find((each) => each === level);
  if (file === undefined || stderr_level === undefined) return pino(options, to_stderr); // silent is silent everywhere
  const lower = levels.indexOf(stderr_level) < levels.indexOf(file_level) ? stderr_level : file_level;
  const streams = [
    { level: stderr_level, stream: to_stderr },
    { level: lower, stream: openLogFile({ path: file }) },
  ];
  return pino({ ...options, level: lower }, multistream(streams));
}

/** Adds the trace in which a line is written; what the line says of it itself goes first. */
function traceOfLine(): object {
  const traceparent = activeTraceparent();
  return traceparent === undefined ? {} : { trace_id: traceparent.split('-')[1] };
}

/** Errors of libraries carry whole connections and requests; the log gets what one reads. */
function leanError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message, stack } = error;
  return {
    name,
    message,
    ...('code' in error && { code: error.code }),
    stack: stack?.split('\n').slice(1, 6).join('\n'),
  };
}
