import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startCollector, type Collector } from '../helpers/collector.ts';
import { freePortsInARow } from '../helpers/free-port.ts';
import { clusterFolder, removeFolder } from '../helpers/embedded.ts';

/** MEDLEY_PROCESSES: several API processes behind one port, with the PostgreSQL that comes along. */

const main = join(import.meta.dirname, '../../src/main.ts');
let folder = '';
let child: ChildProcess;
let output = '';
let url = '';
let key = '';
let metrics_port = 0;
let collector: Collector;

beforeAll(async () => {
  folder = clusterFolder();
  metrics_port = await freePortsInARow(3);
  collector = await startCollector();
  child = spawn(process.execPath, [main], {
    env: {
      ...process.env,
      PORT: '0',
      MEDLEY_DATA: join(folder, 'data'),
      MEDLEY_PROCESSES: '2',
      MEDLEY_METRICS: String(metrics_port),
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics`,
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await vi.waitUntil(() => output.includes('hello.png'), { interval: 50, timeout: 240_000 });
  url = /running at (\S+) with 2 API processes/.exec(output)?.[1] ?? '';
  key = /mdl_[0-9A-Za-z]{36}/.exec(output)?.[0] ?? '';
});

afterAll(async () => {
  if (child.exitCode === null) {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await collector.stop();
  removeFolder(folder);
});

const call = (path: string, body?: object) =>
  fetch(url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    ...(body && { body: JSON.stringify(body) }),
  });

/** The process ids of the API processes. */
function apiProcesses(): number[] {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ').map(Number);
  return children.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('main.ts'));
}

test('two API processes serve one port, and make an image with the worker that started them', async () => {
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  await vi.waitFor(() => expect(apiProcesses()).toHaveLength(2), { timeout: 120_000 });
  const created = await call('/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt: 'waves' } });
  expect(await created.json()).toMatchObject({ status: 'succeeded', output: [{ url: expect.stringContaining(url) }] });
  const messages = [{ role: 'user', content: 'Hello' }];
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => call('/v1/chat/completions', { model: 'sandbox/chat', max_tokens: 9, messages })),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
});

test('each process sends its metrics to the collector, as an instance of its own, and no traces', async () => {
  const instances = () => new Set(collector.texts.map((text) => /"service\.instance\.id".{1,80}"\}/.exec(text)?.[0]));
  await expect.poll(() => instances().size).toBe(3);
  expect(collector.metrics).toHaveLength(collector.texts.length);
});

test('each process has its metrics on a port of its own, the API processes behind the one that started them', async () => {
  const roleAt = async (port: number) => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
    return /^medley_info\{version="[^"]+",role="([a-z]+)"\} 1$/m.exec((await response?.text()) ?? '')?.[1];
  };
  const roles = () => Promise.all([0, 1, 2].map((behind) => roleAt(metrics_port + behind)));
  await expect.poll(roles).toEqual(['all', 'api', 'api']); // the second one may still start
});

test('an API process that is killed is replaced, and the other one serves meanwhile', async () => {
  const [first] = apiProcesses();
  process.kill(first ?? 0, 'SIGKILL');
  await vi.waitFor(async () => expect((await call('/v1/balance')).status).toBe(200), { timeout: 120_000 });
  await vi.waitFor(() => expect(apiProcesses().filter((pid) => pid !== first)).toHaveLength(2), { timeout: 120_000 });
  expect((await call('/v1/balance')).status).toBe(200);
});

test('all processes end in order', async () => {
  const processes = apiProcesses();
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  for (const pid of processes) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
