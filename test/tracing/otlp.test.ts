import { afterEach, beforeEach, expect, test } from 'vitest';
import { openOtlp, type SpanExporter } from '../../src/tracing/otlp.ts';
import { Tracer } from '../../src/tracing/tracer.ts';
import { freePort } from '../helpers/free-port.ts';
import { startCollector, type Collector } from '../helpers/collector.ts';

let collector: Collector;
let lost: [count: number, reason: string][];
let exporter: SpanExporter;

function open(url: string, own_lost: typeof lost): SpanExporter {
  return openOtlp({
    url,
    headers: { 'x-tenant': 'a' },
    resource: { 'service.name': 'medley' },
    version: '1',
    onLost: (count, reason) => own_lost.push([count, reason]),
  });
}

beforeEach(async () => {
  lost = [];
  collector = await startCollector();
  exporter = open(`${collector.url}/v1/traces`, lost);
});
afterEach(async () => {
  await exporter.close();
  await collector.stop();
});

const makeSpans = (to: SpanExporter, count: number) => {
  const tracer = new Tracer(to.add, 1);
  for (let i = 0; i < count; i++) tracer.begin({ name: `span ${i}` })?.end();
};

test('spans arrive with their times, facts, failures and the resource, in a form that OTLP has', async () => {
  const tracer = new Tracer(exporter.add, 1);
  const span = tracer.begin({
    name: 'chat gpt-x',
    kind: 'client',
    attributes: { text: 'a', count: 7, share: 0.5, is_new: true, list: ['a', 'b'], absent: undefined },
  });
  span?.fail('timeout');
  span?.end();
  span?.end();
  await exporter.close();
  expect(collector.spans).toHaveLength(1);
  const [got] = collector.spans;
  expect(got).toMatchObject({ name: 'chat gpt-x', kind: 3, status: { code: 2, message: 'timeout' } });
  expect(got?.facts).toMatchObject({ text: 'a', count: '7', share: 0.5, is_new: true });
  expect(got?.facts).not.toHaveProperty('absent');
  const [from, to] = [BigInt(got?.startTimeUnixNano ?? 0), BigInt(got?.endTimeUnixNano ?? 0)];
  expect(to).toBeGreaterThanOrEqual(from);
  expect(Math.abs(Number(from / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  expect(collector.texts[0]).toContain('{"key":"service.name","value":{"stringValue":"medley"}}');
  expect(collector.headers[0]).toMatchObject({ 'content-type': 'application/json', 'x-tenant': 'a' });
});

test('many spans go in batches, and none is lost while the collector answers', async () => {
  makeSpans(exporter, 2_000);
  await expect.poll(() => collector.spans.length).toBe(2_000);
  expect(new Set(collector.spans.map(({ spanId }) => spanId)).size).toBe(2_000);
  expect(lost).toEqual([]);
});

test('a collector that answers nothing costs 4,096 spans of memory and no more', async () => {
  collector.answer('hang');
  makeSpans(exporter, 10_000);
  const too_many = lost.filter(([, reason]) => reason === 'the collector is too slow');
  expect(too_many.length).toBe(10_000 - 4_096 - 512);
});

test('what a collector refuses is lost, and the next batch is sent', async () => {
  collector.answer(503);
  makeSpans(exporter, 512);
  await expect.poll(() => lost).toEqual([[512, 'the collector answered 503']]);
  collector.answer(200);
  makeSpans(exporter, 1);
  await expect.poll(() => collector.spans.length).toBe(1);
});

test('a stop waits two seconds for a collector that is gone or mute, and says how much is lost', async () => {
  const gone = open(`http://127.0.0.1:${await freePort()}/v1/traces`, lost);
  makeSpans(gone, 3);
  await gone.close();
  expect(lost).toEqual([[3, expect.stringContaining('ECONNREFUSED')]]);
  collector.answer('hang');
  let shortest_ms = Infinity; // a machine that stops makes one longer
  for (let tries = 0; tries < 5 && shortest_ms >= 5_000; tries++) {
    const mute = open(`${collector.url}/v1/traces`, lost);
    makeSpans(mute, 3);
    const begun_ms = performance.now();
    await mute.close();
    shortest_ms = Math.min(shortest_ms, performance.now() - begun_ms);
    expect(lost.at(-1)).toEqual([3, expect.stringMatching(/timeout|stopped/)]);
  }
  expect(shortest_ms).toBeLessThan(5_000);
});
