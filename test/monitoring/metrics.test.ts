import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setThreshold } from '../../src/billing/alerts.ts';
import { startMetricsServer } from '../../src/monitoring/metrics-server.ts';
import { openServiceGauges } from '../../src/monitoring/service-gauges.ts';
import { startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

const token = 'a token of these metrics';
const yaml = 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n';

let service: TestApp;
let client: Client;
let receiver: Receiver;
let url: string;

beforeAll(async () => {
  service = await startTestApp({ yaml, env: { MEDLEY_METRICS_TOKEN: token } });
  client = await service.client();
  receiver = await startReceiver();
  url = `http://127.0.0.1:${await startMetricsServer(service.app, { host: '127.0.0.1', port: 0 })}/metrics`;
});
afterAll(async () => {
  await receiver.stop();
  await service.stop();
});

const bearer = { authorization: `Bearer ${token}` };

/** The series of a scrape, by their names with labels. Throws for a line that Prometheus would not read. */
async function scrape(from = url): Promise<Map<string, number>> {
  const response = await fetch(from, { headers: bearer });
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const series = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    if (line === '' || /^# (HELP [a-z_]+ \S.*|TYPE [a-z_]+ (counter|gauge|histogram))$/.test(line)) continue;
    const [, name, value] =
      /^([a-z_]+(?:\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})?) (\S+)$/.exec(line) ??
      [];
    if (name === undefined || Number.isNaN(Number(value))) throw new Error(`not a line of metrics: ${line}`);
    if (series.has(name)) throw new Error(`twice: ${name}`);
    series.set(name, Number(value));
  }
  return series;
}

test('a chat call is counted with its model, route, tokens and money', async () => {
  const before = await scrape();
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] };
  const { status, headers } = await client.call('POST', '/v1/chat/completions', body);
  expect(status).toBe(200);
  const refused = await client.call('POST', '/v1/chat/completions', { ...body, model: 'nobody/knows' });
  expect(refused.status).toBe(404);
  let after = await scrape();
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  const ok = 'medley_http_requests_total{method="POST",route="/v1/chat/completions",status="200"}';
  const countedNow = async () => {
    after = await scrape();
    return [
      grown(ok),
      grown(ok.replace('200', '404')),
      [...after.keys()].some((name) => name.startsWith('medley_chat_calls_total')),
    ];
  };
  await expect.poll(countedNow).toEqual([1, 1, true]); // behind the answers
  const [call = ''] = [...after.keys()].filter((name) => name.startsWith('medley_chat_calls_total'));
  expect(call).toMatch(/^\S+\{model="sandbox\/chat",route="sandbox\/chat#[^"]+",style="completions",outcome="ok"\}$/);
  const route = /route="[^"]+"/.exec(call)?.[0] ?? '';
  expect(grown(`medley_chat_call_seconds_count{model="sandbox/chat",${route}}`)).toBe(1);
  expect(grown(`medley_route_attempts_total{${route},outcome="answered"}`)).toBe(1);
  expect(grown('medley_units_total{model="sandbox/chat",unit="output_tokens"}')).toBeGreaterThan(0);
  const spend = grown('medley_spend_total{model="sandbox/chat",currency="USD"}');
  expect(spend.toFixed(6)).toBe(Number(headers.get('x-cost-amount')).toFixed(6));
});

test('a task is counted from its creation to its webhook', async () => {
  const { url: webhook_url } = receiver;
  const done = await client.call('POST', '/v1/generate?wait=60', {
    model: 'sandbox/image',
    input: { prompt: 'counted' },
    webhook_url: `${webhook_url}/counted`,
  });
  const statusOf = async ({ json }: Answered) => (await client.call('GET', `/v1/tasks/${json.id}`)).json.status;
  await expect.poll(() => statusOf(done)).toBe('succeeded'); // on a slow machine it takes longer than the wait
  const failed = await client.call('POST', '/v1/generate?wait=60', {
    model: 'sandbox/image',
    input: { prompt: '[[fail]]' },
  });
  await expect.poll(() => statusOf(failed)).toBe('failed');
  await receiver.nth('/counted', 1);
  const delivered = 'medley_webhook_attempts_total{outcome="delivered"}';
  const failures = 'medley_tasks_ended_total{model="sandbox/image",status="failed",error="upstream_error"}';
  let series = await scrape();
  const countedNow = async () => {
    series = await scrape();
    return [series.get(delivered), series.get(failures)];
  };
  await expect.poll(countedNow).toEqual([1, 1]);
  expect(series.get('medley_tasks_created_total{model="sandbox/image"}')).toBe(2);
  expect(series.get('medley_tasks_ended_total{model="sandbox/image",status="succeeded",error=""}')).toBe(1);
  expect(series.get('medley_task_seconds_count{model="sandbox/image",status="succeeded"}')).toBe(1);
  expect(series.get('medley_task_wait_seconds_count{model="sandbox/image"}')).toBe(2);
  expect(series.get('medley_spend_total{model="sandbox/image",currency="USD"}')).toBe(0.01);
  expect(series.get('medley_webhook_attempt_seconds_count')).toBe(1);
});

test('no metric names an account, a key or a task, and paths that no endpoint has are one series', async () => {
  for (const path of ['/v1/secret-1', '/v1/secret-2', `/v1/tasks/${client.key_id}`]) await client.call('GET', path);
  await fetch(`${service.url}/v1/models`, { method: 'OPTIONS' });
  const namesNow = async () => [...(await scrape()).keys()].join('\n');
  await expect.poll(namesNow).toContain('medley_http_requests_total{method="GET",route="none",status="404"}');
  const names = await namesNow();
  expect(names).not.toContain(client.account_id);
  expect(names).not.toContain(client.key_id);
  expect(names).not.toMatch(/secret-|task_[0-9a-z]{26}/);
});

test('the state of the service is read from the database: queues, nodes, circuits, low balances', async () => {
  const { app } = service;
  await setThreshold(app.db, client.account_id, 1_000_000_000_000n, new Date(app.clock.now()));
  await app.health.noteFailure('some/model#1', 'acc_a', { cause: 'timeout', pause_ms: 600_000 });
  let lines: string[] = [];
  const read = async () => {
    const gauges = openServiceGauges();
    await gauges.read(app);
    lines = gauges.metrics.flatMap((metric) => [...metric.lines()]);
    return lines;
  };
  await expect.poll(read).toContain('medley_nodes{role="all"} 1'); // a node that stood still counts again when it says so
  expect(lines).toContain('medley_database_up 1');
  expect(lines).toContain('medley_accounts_below_alert 1');
  expect(lines).toContain('medley_account_circuits_open 1');
  expect(lines).toContain('medley_tasks{status="queued"} 0');
  expect(lines.some((line) => line.startsWith('medley_leases '))).toBe(true);
});

test('without a database the process is still scraped, and the metrics say that it is away', async () => {
  const gauges = openServiceGauges();
  const { app } = service;
  await gauges.read({ ...app, db: { ...app.db, query: () => Promise.reject(new Error('away')) } });
  expect(gauges.metrics.flatMap((metric) => [...metric.lines()])).toEqual(['medley_database_up 0']);
});

test('a scrape waits for a database that does not answer only so long', async () => {
  const gauges = openServiceGauges({ patience_ms: 50 });
  const { app } = service;
  await gauges.read({ ...app, db: { ...app.db, query: () => new Promise(() => undefined) } });
  expect(gauges.metrics.flatMap((metric) => [...metric.lines()])).toEqual(['medley_database_up 0']);
});

test('however often it is scraped, the database is asked once in ten seconds', async () => {
  let reads = 0;
  let now_ms = 0;
  const gauges = openServiceGauges({ elapsed_ms: () => now_ms });
  const { app } = service;
  const query: typeof app.db.query = (...statement) => {
    reads += 1;
    return app.db.query(...statement);
  };
  const counted = { ...app, db: { ...app.db, query } };
  await Promise.all([gauges.read(counted), gauges.read(counted), gauges.read(counted)]);
  const once = reads;
  now_ms = 9_999;
  await gauges.read(counted);
  expect([once > 0, reads]).toEqual([true, once]);
  now_ms = 10_000;
  await gauges.read(counted);
  expect(reads).toBe(2 * once);
});

test('the token opens the metrics on both ports, and nothing else does', async () => {
  for (const address of [url, `${service.url}/metrics`]) {
    expect((await fetch(address, { headers: bearer })).status).toBe(200);
    for (const authorization of ['', 'Bearer', `Bearer ${token}x`, `Basic ${token}`, `Bearer ${client.key}`])
      expect((await fetch(address, { headers: { authorization } })).status).toBe(401);
  }
  expect((await scrape(`${service.url}/metrics`)).get('process_resident_memory_bytes')).toBeGreaterThan(1e7);
});

test('the port of the metrics has nothing but metrics, and closes connections that say nothing', async () => {
  const { origin, port } = new URL(url);
  expect((await fetch(`${origin}/v1/models`, { headers: bearer })).status).toBe(404);
  expect((await fetch(url, { method: 'POST', headers: bearer, body: 'x' })).status).toBe(405);
  const socket = connect(Number(port), '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.write('GET /metrics HTTP/1.1\r\n');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resume();
  await closed;
});

test('without a token the API has no metrics', async () => {
  const open = await service.beside();
  try {
    const response = await fetch(`${open.url}/metrics`, { headers: bearer });
    expect(response.status).toBe(404);
  } finally {
    await open.stop();
  }
});

test('a port that is taken is an error which names the setting', async () => {
  const { port } = new URL(url);
  await expect(startMetricsServer(service.app, { host: '127.0.0.1', port: Number(port) })).rejects.toThrow(
    `MEDLEY_METRICS: nothing can listen at 127.0.0.1:${port} (EADDRINUSE)`,
  );
  expect(await freePort()).not.toBe(Number(port));
});
