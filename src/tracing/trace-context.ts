import { randomBytes } from 'node:crypto';

/**
 * A place in a trace, as the header `traceparent` says it (https://www.w3.org/TR/trace-context/, read 2026-11-27).
 * `trace_id` has 32 hexadecimal digits, `span_id` 16.
 */
export type TraceContext = { readonly trace_id: string; readonly span_id: string; readonly is_sampled: boolean };

const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** Returns the context of a header; undefined for what is none. A later version may have more after a dash. */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  const [, version, trace_id = '', span_id = '', flags = '', more] = form.exec(header ?? '') ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(trace_id) || /^0+$/.test(span_id)) return undefined;
  return { trace_id, span_id, is_sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns the header for a context. */
export function traceparentOf({ trace_id, span_id, is_sampled }: TraceContext): string {
  return `00-${trace_id}-${span_id}-${is_sampled ? '01' : '00'}`;
}

export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}

export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}
