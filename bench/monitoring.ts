/**
 * The price of being watched: CPU of a service at 500 chat calls/s, plain, with /metrics read every second, and with 1 %
 * of its traces recorded. Three processes on one database take turns. `npm run bench monitoring [-- --quick]`
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setInterval as every } from 'node:timers/promises';
import { openDatabase } from '../src/db/database.ts';
import { startLoader } from './chat-load.ts';
import { ask, makeKeys, startUpstream, yamlOf } from './chat-places.ts';
import { cpuOf_us } from './cpu.ts';
import { openHome } from './home.ts';
import { makeLeash } from './leash.ts';
import { table, writeSections } from './report.ts';
import { port, quantile, startService, stopService } from './service.ts';

const quick = process.argv.includes('--quick');
const turns = quick ? 2 : 15;
const turn_ms = quick ? 1_000 : 4_000;
const warm_up_ms = quick ? 1_000 : 15_000;
const per_s = 500;

/** Takes what it is sent, as a collector of traces does. */
async function startCollector(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    close: () => server.close(),
  };
}

async function scrape(at: number, stopped: AbortSignal): Promise<number> {
  let bytes = 0;
  try {
    for await (const _ of every(1_000, undefined, { signal: stopped })) {
      bytes = (await (await fetch(`http://127.0.0.1:${at}/metrics`)).arrayBuffer()).byteLength;
    }
  } catch (error) {
    if (!stopped.aborted) throw error;
  }
  return bytes;
}

async function main(): Promise<void> {
  const leash = makeLeash();
  const upstream = await startUpstream(leash);
  const loader = startLoader();
  leash.hold(loader.child);
  const home = await openHome({}, leash);
  const { folder, embedded } = home;
  writeFileSync(join(folder, 'medley.yaml'), yamlOf(upstream.port, 1));
  const collector = await startCollector();
  const common = { folder, database_url: embedded.url, leash };
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0.01' };
  const places = [
    { name: 'plain', child: await startService('all', common), at: port },
    {
      name: '/metrics every second',
      child: await startService('api', { ...common, env: { MEDLEY_METRICS: String(port + 10) } }, [], port + 1),
      at: port + 1,
    },
    {
      name: '1 % of traces',
      child: await startService('api', { ...common, env: traced }, [], port + 2),
      at: port + 2,
    },
    { name: 'plain again', child: await startService('api', common, [], port + 3), at: port + 3 },
  ];
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  const keys = await makeKeys(db);
  const requests = keys.shared.map((key) => ask('completions', 'bench/completions', { key, stream: false }));
  const pace = { kind: 'paced', requests, connections: 64, per_s } as const;
  for (const { at } of places) await loader.run({ ...pace, port: at, duration_ms: warm_up_ms });
  const costs: number[][] = places.map(() => []);
  const stop = new AbortController();
  const scraping = scrape(port + 10, stop.signal);
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, { child, at }] of places.entries()) {
      const before = cpuOf_us(child.pid);
      const { count } = await loader.run({ ...pace, port: at, duration_ms: turn_ms });
      costs[index]?.push((cpuOf_us(child.pid) - before) / count);
    }
  }
  stop.abort();
  const bytes = await scraping;
  const medians = costs.map((values) => quantile(values, 0.5));
  const plain = medians[3] ?? Number.NaN;
  const rows = places.map(({ name }, index) => [
    name,
    (medians[index] ?? Number.NaN).toFixed(0),
    `${((100 * (medians[index] ?? Number.NaN)) / plain - 100).toFixed(1)} %`,
  ]);
  const sections = [
    `CPU of the process, µs per call, at ${per_s} calls/s: medians of ${turns} turns of ${turn_ms} ms; beside "plain again", an API process as the two before it. "plain" is the worker, too. A scrape has ${bytes} bytes.`,
    table([['process', 'µs', 'more'], ...rows]),
  ];
  console.log(sections.join('\n\n'));
  if (!quick) writeSections('monitoring', 'npm run bench monitoring', sections);
  for (const { child } of places.toReversed()) await stopService(child);
  for (const child of [upstream.child, loader.child]) child.kill('SIGKILL');
  collector.close();
  await db.close();
  await home.close();
}

await main();
process.exit(0);
