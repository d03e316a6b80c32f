import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testDatabase } from '../helpers/database.ts';
import { depth } from '../helpers/depth.ts';
import { runCampaign, showFinding } from './campaign.ts';
import { startService } from './service.ts';
import { SlowRequests } from './slow-requests.ts';
import { watchTurns, watched_arguments, type Turn } from './turns.ts';
import { startHostileUpstream } from './upstream.ts';
import { chat_models, makePlace, withUpstream } from './world.ts';

test('no heavy request keeps the event loop from others for more than 200 ms', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'medley-turns-'));
  const database = await testDatabase({ state: 'engine' });
  const upstream = await startHostileUpstream();
  writeFileSync(join(folder, 'medley.yaml'), withUpstream(upstream.url));
  const env = {
    DATABASE_URL: database.url,
    MEDLEY_DATA: join(folder, 'files'),
    MEDLEY_CONFIG: join(folder, 'medley.yaml'),
    UPSTREAM_KEY: 'upstream-key-0123456789',
    PORT: '0',
  };
  const service = await startService(folder, env, watched_arguments);
  try {
    const place = await makePlace(database.db, service.url, chat_models);
    const { findings, statuses } = await runCampaign({
      world: place.world,
      port: Number(new URL(service.url).port),
      secrets: place.secrets,
      seed: 21,
      first: 0,
      count: depth(40, 60),
      connections: 4,
      heavy_percent: 100,
      slow: new SlowRequests(watchTurns(service.child)),
    });
    expect(findings.map(showFinding)).toEqual([]);
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404]));
  } finally {
    await service.stop();
    await upstream.stop();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a turn that computes is reported with its time, and one that waits is not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'medley-turn-'));
  mkdirSync(join(folder, 'src'));
  const main = join(folder, 'src/main.ts');
  writeFileSync(
    main,
    `const cpu = () => { const { user, system } = process.threadCpuUsage(); return (user + system) / 1000; };
     const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
     const compute = () => { const from = cpu(); while (cpu() - from < 400); };
     const after = (ms, work, next) => setTimeout(() => { work(); next?.(); }, ms); // the next turn begins behind this one
     after(300, wait, () => after(300, compute, () => after(300, () => process.exit())));`,
  );
  const child = spawn(process.execPath, [...watched_arguments, main], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  });
  const seen: Turn[] = [];
  watchTurns(child).onTurn((turn) => seen.push(turn));
  await new Promise((resolve) => child.once('close', resolve));
  rmSync(folder, { recursive: true, force: true });
  const long = seen.filter(({ cpu_ms }) => cpu_ms > 300);
  expect(long).toHaveLength(1);
  expect(long[0]?.cpu_ms).toBeLessThan(700);
});

test('of the requests on their way in a long turn, those that take as long alone are found', async () => {
  let report: (turn: Turn) => void = () => {};
  const slow = new SlowRequests({
    onTurn: (listener) => void (report = listener),
    memory: () => Promise.reject(new Error('is asked for nothing')),
  });
  const turn = (cpu_ms: number) => report({ from_ms: Date.now() - cpu_ms, to_ms: Date.now(), cpu_ms });
  const [guilty, beside, moody] = [slow.begin(1), slow.begin(2), slow.begin(3)];
  turn(300);
  for (const end of [guilty, beside, moody]) end();
  let moods = 0;
  const slow_turns = await slow.confirm(async (number) => {
    if (number === 1) turn(250);
    if (number === 2) turn(20);
    if (number === 3 && moods++ === 0) turn(900); // once
  });
  expect(slow_turns).toEqual([{ number: 1, cpu_ms: 250 }]);
  expect(slow.turns).toHaveLength(1);
});
