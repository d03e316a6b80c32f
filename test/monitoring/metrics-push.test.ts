import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMetricsPush, type MetricsPushParts } from '../../src/monitoring/metrics-push.ts';
import { openReading } from '../../src/monitoring/scrape.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startCollector, type CollectedMetric } from '../helpers/collector.ts';

let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp();
  client = await service.client();
});
afterAll(() => service.stop());

/** Sends to a collector until `stop`; the interval is shorter than any that the environment may ask for. */
async function startPush(every_ms: number) {
  const collector = await startCollector();
  const closers: (() => Promise<void> | void)[] = [];
  const warnings: unknown[] = [];
  const log: MetricsPushParts['log'] = service.app.log.child({});
  log.warn = (facts: unknown) => void warnings.push(facts);
  const app: MetricsPushParts = { ...service.app, log, onStop: (close) => void closers.unshift(close) };
  const url = `${collector.url}/v1/metrics`;
  startMetricsPush(app, { url, headers: { 'x-tenant': 'a' }, resource: { 'service.name': 'medley' }, every_ms });
  const stop = async () => {
    for (const close of closers) await close();
  };
  return { collector, warnings, stop };
}

const find = (metrics: CollectedMetric[] | undefined, name: string) => metrics?.find((each) => each.name === name);

/** Sends once, at the stop. The database has three seconds then, and the collector two: a machine that stood still sends once more. */
async function pushAtStop() {
  for (;;) {
    const push = await startPush(3_600_000);
    await push.stop();
    await push.collector.stop();
    const up = find(push.collector.metrics[0], 'medley_database_up');
    if (up?.gauge?.dataPoints[0]?.asDouble === 1 && push.warnings.length === 0) return push;
  }
}

test('counters, gauges and histograms arrive in the form of OTLP, with the last numbers at a stop', async () => {
  const answer = await client.call('POST', '/v1/chat/completions', {
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  expect(answer.status).toBe(200);
  await expect.poll(() => [...service.app.metrics.chat_calls.lines()]).toHaveLength(1); // counted behind the answer
  const push = await pushAtStop();
  expect(push.warnings).toEqual([]);
  expect(push.collector.metrics).toHaveLength(1);
  const [metrics] = push.collector.metrics;
  const calls = find(metrics, 'medley_chat_calls_total');
  expect(calls?.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true });
  expect(calls?.sum?.dataPoints).toMatchObject([{ asDouble: 1 }]);
  expect(calls?.sum?.dataPoints[0]?.attributes).toContainEqual({
    key: 'model',
    value: { stringValue: 'sandbox/chat' },
  });
  expect(find(metrics, 'medley_database_up')?.gauge?.dataPoints).toMatchObject([{ asDouble: 1, attributes: [] }]);
  expect(find(metrics, 'process_cpu_seconds_total')?.sum).toMatchObject({ isMonotonic: true });
  const seconds = find(metrics, 'medley_chat_call_seconds')?.histogram;
  expect(seconds).toMatchObject({ aggregationTemporality: 2 });
  const [point] = seconds?.dataPoints ?? [];
  expect(point).toMatchObject({ count: '1' });
  expect(point?.bucketCounts).toHaveLength((point?.explicitBounds?.length ?? 0) + 1);
  expect(point?.bucketCounts?.map(Number).reduce((sum, each) => sum + each, 0)).toBe(1);
  expect(BigInt(point?.timeUnixNano ?? 0)).toBeGreaterThan(BigInt(point?.startTimeUnixNano ?? 0));
  const [text = ''] = push.collector.texts;
  expect(text).toMatch(/\{"key":"service\.instance\.id","value":\{"stringValue":"[0-9a-f-]{36}"\}\}/);
  expect(text).not.toContain(client.account_id);
  expect(text).not.toContain(client.key_id);
  expect(push.collector.headers[0]).toMatchObject({ 'content-type': 'application/json', 'x-tenant': 'a' });
});

test('every metric that Prometheus reads is sent, and no other', async () => {
  const namesSent = async () => (await pushAtStop()).collector.metrics[0]?.map(({ name }) => name).toSorted() ?? [];
  const namesRead = async () => {
    const read = (await openReading(service.app)()).filter((metric) => [...metric.points()].length > 0);
    return read.map(({ name }) => name).toSorted();
  };
  // Between the two the service may count something for the first time.
  let sent: string[] = [];
  let read: string[] = [];
  await expect
    .poll(async () => {
      [sent, read] = [await namesSent(), await namesRead()];
      return new Set(sent).symmetricDifference(new Set(read));
    })
    .toEqual(new Set());
  expect(sent).toEqual(read);
  expect(sent).toEqual(expect.arrayContaining(['medley_info', 'medley_nodes', 'process_start_time_seconds']));
});

test('a collector that refuses is in the log once, and numbers arrive when it takes them again', async () => {
  const push = await startPush(50);
  push.collector.answer(503);
  await expect.poll(() => push.collector.headers.length).toBeGreaterThan(2);
  push.collector.answer(200);
  await expect.poll(() => push.collector.metrics.length).toBeGreaterThan(1);
  expect(push.warnings).toEqual([{ reason: 'the collector answered 503' }]);
  await push.stop();
  await push.collector.stop();
});

test('a stop does not wait for ever for a collector that does not answer', async () => {
  const push = await startPush(3_600_000);
  push.collector.answer('hang');
  await expect(push.stop()).resolves.toBeUndefined(); // though no answer ever comes
  await push.collector.stop();
});
