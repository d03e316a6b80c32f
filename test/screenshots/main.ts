/**
 * npm run screenshots -- [NAME…] [--into FOLDER] [--look light|dark|phone]
 *
 * Every page of the dashboard as a picture in docs/screenshots, of a service of its own with a PostgreSQL of its
 * own, in which an agency has worked for two months. Names: only pictures whose names begin so.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { systemClock } from '../../src/lib/clock.ts';
import { startTestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import setUpCluster from '../helpers/global-setup.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { take, type Camera } from './camera.ts';
import { settingsYaml } from './settings.ts';
import { fullShots, momentShots, stateShots, type Look, type Shot } from './shots.ts';
import { setTime } from './time.ts';
import { begins_at, makeWorld, shown_at } from './world.ts';

const { values, positionals } = parseArgs({
  options: {
    into: { type: 'string', default: join(import.meta.dirname, '../../docs/screenshots') },
    look: { type: 'string', multiple: true, default: ['light', 'dark', 'phone'] },
  },
  allowPositionals: true,
});

/** The address in the pictures; the browser is told where that is. */
const host = 'medley.example.com';

/** Always the same, since it is to be seen. */
const hooks_port = 8087;

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const closing: (() => Promise<unknown>)[] = [];
  try {
    setTime(begins_at);
    closing.push(await setUpCluster());
    const receiver = await startReceiver('127.0.0.1', hooks_port);
    closing.push(receiver.stop);
    const env = { MEDLEY_BASE_URL: `http://${host}` };
    const started = await startTestApp({
      yaml: settingsYaml('1s, 1s, 1s, 1s, 1s'),
      env,
      clock: systemClock, // the time that was set, and not the database's
      resolve: async () => ['127.0.0.1'],
    });
    closing.push(started.stop);
    const service = { ...started, url: started.app.local_url() };
    const world = await makeWorld(service, receiver, say);
    const chromium = keepBrowser([
      `--host-resolver-rules=MAP ${host}:80 ${new URL(service.url).host}`,
      `--unsafely-treat-insecure-origin-as-secure=http://${host}`,
    ]);
    closing.push(chromium.close);
    await takeAll({ browser: chromium.get, service, world, folder: values.into, shown_at });
  } finally {
    for (const close of closing.toReversed()) await close();
  }
}

/** Chromium crashes now and then after a hundred pages; then there is another one. */
function keepBrowser(args: string[]) {
  let launched: Awaited<ReturnType<typeof launchBrowser>> | undefined;
  const close = async () => void (await launched?.close());
  const get = async (): Promise<Browser> => {
    if (launched?.browser.isConnected()) return launched.browser;
    await close();
    launched = await launchBrowser(args);
    return launched.browser;
  };
  return { get, close };
}

async function takeAll(camera: Camera): Promise<void> {
  const { world } = camera;
  const all = [...fullShots(world), ...momentShots(world), ...stateShots(world)];
  const selected = all.filter(
    ({ name }) => positionals.length === 0 || positionals.some((word) => name.startsWith(word)),
  );
  const jobs = selected.flatMap((shot) => looksOf(shot).map((look) => ({ shot, look })));
  const first_ones = jobs.filter(({ shot }) => !shot.last);
  const last_ones = jobs.filter(({ shot }) => shot.last);
  let done = 0;
  for (const { shot, look } of [...first_ones, ...last_ones]) {
    const again = (error: unknown) => {
      say(`once more, after ${error}`);
      return take(camera, shot, look);
    };
    const result = await take(camera, shot, look).catch(again);
    say(`${++done} of ${jobs.length}  ${shot.name}-${look}  ${result}`);
  }
}

function looksOf({ looks = ['light', 'dark', 'phone'] }: Shot): Look[] {
  return looks.filter((look) => values.look.includes(look));
}

await main();
