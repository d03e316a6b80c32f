import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { isRecord } from '../../src/lib/is-record.ts';
import { startMetricsServer } from '../../src/monitoring/metrics-server.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { expressionsIn } from './expressions.ts';

/** npm run test:prometheus: a real Prometheus with the committed files beside the service. */

const root = join(import.meta.dirname, '../..');
const bin = process.env['MEDLEY_TEST_PROMETHEUS'] ?? '';
const token = 'a-token-of-the-metrics';

let folder: string;
let service: TestApp;
let server: ChildProcess;
let output = '';
let api: string;

beforeAll(async () => {
  assert(bin !== '', 'the command says where Prometheus is');
  service = await startTestApp({ env: { MEDLEY_METRICS_TOKEN: token } });
  const port = await startMetricsServer(service.app, { host: '127.0.0.1', port: 0 });
  folder = mkdtempSync(join(tmpdir(), 'medley-prometheus-'));
  copyFileSync(join(root, 'deploy/prometheus/medley.rules.yml'), join(folder, 'medley.rules.yml'));
  writeFileSync(join(folder, 'token'), token);
  const config = readFileSync(join(root, 'deploy/prometheus/prometheus.yml'), 'utf8')
    .replace('127.0.0.1:9464', `127.0.0.1:${port}`)
    .replace('scrape_interval: 15s', 'scrape_interval: 1s\n  evaluation_interval: 1s')
    .replace(/# (authorization: \{ credentials_file: )\S+ \}.*/, `$1${join(folder, 'token')} }`);
  writeFileSync(join(folder, 'prometheus.yml'), config);
  const own_port = await freePort();
  api = `http://127.0.0.1:${own_port}/api/v1`;
  server = spawn(
    join(bin, 'prometheus'),
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${own_port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  server.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await makeTraffic();
  const isRead = async () => (await values('medley_chat_calls_total').catch(() => [])).length > 0;
  await vi.waitUntil(isRead, { timeout: 120_000, interval: 500 });
}, 120_000);

afterAll(async () => {
  if (server.exitCode === null) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function makeTraffic(): Promise<void> {
  const client = await service.client();
  const messages = [{ role: 'user', content: 'Hello' }];
  for (let count = 0; count < 5; count++)
    await client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages });
  await client.call('POST', '/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt: 'measured' } });
}

/** The series that Prometheus answers to an expression. Throws with its words for one that it does not understand. */
async function values(expression: string): Promise<unknown[]> {
  const response = await fetch(`${api}/query?${new URLSearchParams({ query: expression })}`).catch((error: unknown) => {
    throw new Error(`no Prometheus (${String(error)}): ${output.slice(-600)}`);
  });
  const body: unknown = await response.json();
  assert(isRecord(body), 'Prometheus answers an object');
  if (body['status'] !== 'success') throw new Error(`${expression}: ${String(body['error'])}`);
  const { data } = body;
  return isRecord(data) && Array.isArray(data['result']) ? data['result'] : [];
}

test('Prometheus scrapes the service with its token, and reads all of it', async () => {
  expect(await values('up{job="medley"} == 1')).toHaveLength(1);
  const series = await values('scrape_samples_scraped{job="medley"} > 100');
  expect(series).toHaveLength(1);
});

test('Prometheus loads every alert, evaluates each, and none fires on a service that is well', async () => {
  await vi.waitFor(
    async () => {
      const response = await fetch(`${api}/rules`);
      const text = await response.text();
      expect(text.match(/"health":"ok"/g)).toHaveLength(text.match(/"alert"|"type":"alerting"/g)?.length ?? 0);
      expect(text).toContain('MedleyBooksDiffer');
    },
    { timeout: 120_000, interval: 500 },
  );
  expect(await values('ALERTS{alertstate="firing"}')).toEqual([]);
});

test.each(expressionsIn(root).map(({ where, expression }) => [where, expression]))(
  'Prometheus understands what %s asks for',
  async (_, expression = '') => {
    const query = expression.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*');
    await expect(values(query)).resolves.toBeInstanceOf(Array);
  },
);

test('the alert about the database is pending as soon as the database is away', async () => {
  const away = vi.spyOn(service.app.db, 'query').mockRejectedValue(new Error('the database is away'));
  await vi.waitFor(async () => expect(await values('ALERTS{alertname="MedleyDatabaseAway"}')).not.toEqual([]), {
    timeout: 40_000,
    interval: 500,
  });
  away.mockRestore();
});
