import { isRecord } from './is-record.ts';

const levels: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
};

/** Fields of every line, which are shown in another way or of no use to a person. */
const not_shown = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

const red = '\u001B[31m';
const yellow = '\u001B[33m';
const dim = '\u001B[2m';
const plain = '\u001B[0m';

/**
 * Returns a line of the log as a person reads it on a terminal: time, level, message, facts, and below them the stack of
 * an error. A line that is none is returned as it is.
 */
export function readableLine(json: string, { colors }: { colors: boolean }): string {
  const line = parse(json);
  if (!line) return json;
  const { level, time, msg, err } = line;
  const paint = (color: string, text: string) => (colors ? `${color}${text}${plain}` : text);
  const name = levels[Number(level)] ?? String(level);
  const color = Number(level) >= 50 ? red : Number(level) >= 40 ? yellow : dim;
  const facts = Object.entries(line).filter(([key]) => !not_shown.has(key));
  const shown = facts.map(([key, value]) => `${paint(dim, `${key}=`)}${shownValue(value)}`);
  const words = [
    paint(dim, clockTime(time)),
    paint(color, name.padEnd(5)),
    withoutControls(String(msg ?? '')),
    ...shown,
  ];
  return `${words.join(' ')}${isRecord(err) ? errorLines(err) : ''}\n`;
}

function parse(json: string): Record<string, unknown> | undefined {
  try {
    const line: unknown = JSON.parse(json);
    return isRecord(line) ? line : undefined;
  } catch {
    return undefined;
  }
}

/** The time of this machine's clock, since whoever reads sits before it. */
function clockTime(time: unknown): string {
  const date = new Date(typeof time === 'number' ? time : Number.NaN);
  if (Number.isNaN(date.getTime())) return '??:??:??';
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');
}

/** Control characters, which an upstream may have sent, must not reach the terminal as they are. */
function shownValue(value: unknown): string {
  if (typeof value === 'string' && /^[\w./:#@+-]+$/.test(value)) return value;
  return JSON.stringify(value) ?? String(value);
}

function errorLines({ name, message, code, stack }: Record<string, unknown>): string {
  const head = `${String(name ?? 'Error')}: ${String(message ?? '')}${code === undefined ? '' : ` (${String(code)})`}`;
  const lines = [head, ...(typeof stack === 'string' ? stack.split('\n').map((line) => line.trim()) : [])];
  return lines.map((line) => `\n         ${withoutControls(line)}`).join('');
}

function withoutControls(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ');
}
