import type { ByteRange } from './storage.ts';

/**
 * Reads a Range header for a file (RFC 9110, 14.2): the part to send; `unsatisfiable` (416); undefined if it
 * is absent, not understood or names several parts: the whole file is sent.
 */
export function parseRange(header: string | undefined, size_bytes: number): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') return lastBytes(Number(last), size_bytes);
  const start = Number(first);
  const end = last === '' ? Infinity : Number(last);
  if (end < start) return undefined;
  if (start >= size_bytes) return 'unsatisfiable';
  return { start, end: Math.min(end, size_bytes - 1) };
}

function lastBytes(count: number, size_bytes: number): ByteRange | 'unsatisfiable' {
  if (count === 0 || size_bytes === 0) return 'unsatisfiable';
  return { start: Math.max(0, size_bytes - count), end: size_bytes - 1 };
}
