import { pino, type Logger } from 'pino';
import { readableLine } from '../lib/log-lines.ts';

/** JSON lines for programs, or lines for a person who reads along. */
export type LogFormat = { readonly format: 'json' | 'text'; readonly colors: boolean };

/** Logs to stderr: stdout belongs to what a person is told. */
export function openLog(level: string, { format, colors }: LogFormat = { format: 'json', colors: false }): Logger {
  const options = { level, serializers: { err: leanError } };
  if (format === 'json') return pino(options, pino.destination(2));
  return pino(options, { write: (line) => void process.stderr.write(readableLine(line, { colors })) });
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
