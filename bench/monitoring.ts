/**
 * The price of being watched: CPU of a scrape of /metrics after many calls, and of a call whose trace is recorded beside
 * one whose is not, both by the process itself. Small shares of a rate drown in a shared machine's noise; these do not.
 * `npm run bench monitoring [-- --quick]`
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { openDatabase } from '../src/db/database.ts';
import { startLoader } from './chat-load.ts';
import { ask, makeKeys, startUpstream, yamlOf } from './chat-places.ts';
import { cpuOf_us } from './cpu.ts';
import { openHome } from './home.ts';
import { makeLeash } from './leash.ts';
import { table, writeSections } from './report.ts';
import { port, quantile, startService, stopService, stopServices } from './service.ts';

const quick = process.argv.includes('--quick');
const turns = quick ? 2 : 15;
const turn_ms = quick ? 1_000 : 4_000;
const warm_up_ms = quick ? 1_000 : 15_000;
const per_s = 500;
const scrapes = quick ? 20 : 500;

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

/** CPU of the process for one scrape, µs. */
async function measureScrapes(child: ChildProcess, at: number): Promise<{ cpu_us: number; bytes: number }> {
  const before = cpuOf_us(child.pid);
  let bytes = 0;
  for (let count = 0; count < scrapes; count++)
    bytes = (await (await fetch(`http://127.0.0.1:${at}/metrics`)).arrayBuffer()).byteLength;
  return { cpu_us: (cpuOf_us(child.pid) - before) / scrapes, bytes };
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
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  await startService('all', common); // works on what there is, so that the two beside each other only answer
  const plain = await startService('api', { ...common, env: { MEDLEY_METRICS: String(port + 10) } }, [], port + 1);
  const places = [
    { child: plain, at: port + 1, costs: [] as number[] },
    { child: await startService('api', { ...common, env: traced }, [], port + 2), at: port + 2, costs: [] as number[] },
  ];
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  const keys = await makeKeys(db);
  const requests = keys.shared.map((key) => ask('completions', 'bench/completions', { key, stream: false }));
  const pace = { kind: 'paced', requests, connections: 64, per_s } as const;
  for (const { at } of places) await loader.run({ ...pace, port: at, duration_ms: warm_up_ms });
  for (let turn = 0; turn < turns; turn++) {
    for (const { child, at, costs } of turn % 2 === 0 ? places : places.toReversed()) {
      const before = cpuOf_us(child.pid);
      const { count } = await loader.run({ ...pace, port: at, duration_ms: turn_ms });
      costs.push((cpuOf_us(child.pid) - before) / count);
    }
  }
  const { cpu_us, bytes } = await measureScrapes(plain, port + 10);
  const [usual = Number.NaN, recorded = Number.NaN] = places.map(({ costs }) => quantile(costs, 0.5));
  const of_core = (us_per_s: number) => `${(us_per_s / 10_000).toFixed(2)} % of a core`;
  const rows = [
    ['what', 'CPU of the process', `at ${per_s} calls/s`],
    ['a call', `${usual.toFixed(0)} µs`, of_core(per_s * usual)],
    [
      'a call whose trace is recorded',
      `${recorded.toFixed(0)} µs`,
      `1 % of them: ${of_core((per_s * (recorded - usual)) / 100)} more`,
    ],
    [`a scrape of ${bytes} bytes`, `${cpu_us.toFixed(0)} µs`, `one a second: ${of_core(cpu_us)}`],
  ];
  const sections = [
    `Medians of ${turns} turns of ${turn_ms} ms for each of two processes; the mean of ${scrapes} scrapes.`,
    table(rows),
  ];
  console.log(sections.join('\n\n'));
  if (!quick) writeSections('monitoring', 'npm run bench monitoring', sections);
  for (const { child } of places.toReversed()) await stopService(child);
  stopServices();
  for (const child of [upstream.child, loader.child]) child.kill('SIGKILL');
  collector.close();
  await db.close();
  await home.close();
}

await main();
process.exit(0);
