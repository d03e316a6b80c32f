import { expect, test } from 'vitest';
import { newSpanId, newTraceId, parseTraceparent, traceparentOf } from '../../src/tracing/trace-context.ts';

const trace_id = '0af7651916cd43dd8448eb211c80319c';
const span_id = 'b7ad6b7169203331';

test('a header is read, and written again', () => {
  const header = `00-${trace_id}-${span_id}-01`;
  expect(parseTraceparent(header)).toEqual({ trace_id, span_id, is_sampled: true });
  expect(parseTraceparent(`00-${trace_id}-${span_id}-00`)).toMatchObject({ is_sampled: false });
  expect(traceparentOf({ trace_id, span_id, is_sampled: true })).toBe(header);
  expect(newTraceId()).toMatch(/^[\da-f]{32}$/);
  expect(newSpanId()).toMatch(/^[\da-f]{16}$/);
});

test('a later version may have other flags and more behind them', () => {
  expect(parseTraceparent(`01-${trace_id}-${span_id}-03-what-comes-later`)).toMatchObject({ is_sampled: true });
});

test.each([
  ['nothing', undefined],
  ['an empty text', ''],
  ['zeros for the trace', `00-${'0'.repeat(32)}-${span_id}-01`],
  ['zeros for the span', `00-${trace_id}-${'0'.repeat(16)}-01`],
  ['capital letters', `00-${trace_id.toUpperCase()}-${span_id}-01`],
  ['a version that is forbidden', `ff-${trace_id}-${span_id}-01`],
  ['more than version 00 has', `00-${trace_id}-${span_id}-01-more`],
  ['too short a trace', `00-${trace_id.slice(1)}-${span_id}-01`],
  ['a line end', `00-${trace_id}-${span_id}-01\r\nx: y`],
])('%s is no place in a trace', (_, header) => {
  expect(parseTraceparent(header)).toBeUndefined();
});
