import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findHome } from '../../src/embedded-postgres/home.ts';
import { findPostmaster } from '../../src/embedded-postgres/server.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { freePort } from '../helpers/free-port.ts';
import { medley, readObject } from './medley.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

let folder = '';
let data_dir = '';
let service: ChildProcess | undefined;

beforeEach(() => {
  folder = clusterFolder();
  data_dir = join(folder, 'data');
});

afterEach(async () => {
  if (service) {
    service.kill('SIGTERM');
    if (service.exitCode === null) await once(service, 'exit');
    service = undefined;
  }
  removeFolder(folder);
});

function postmaster(): number | undefined {
  const home = findHome(data_dir);
  return home && findPostmaster(join(home.path, 'data'));
}

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('a command that %s ends stops its PostgreSQL', async (signal, code) => {
  let stop: (signal: NodeJS.Signals) => void = () => undefined;
  const command = medley(['books'], { MEDLEY_DATA: data_dir }, (kill) => (stop = kill));
  await vi.waitUntil(() => postmaster() !== undefined, { interval: 5, timeout: 120_000 });
  stop(signal);
  expect(await command).toEqual({ code, out: '', error: '' });
  expect(postmaster()).toBeUndefined();
  // Nothing is in the way of the next one.
  expect((await medley(['books'], { MEDLEY_DATA: data_dir })).code).toBe(0);
});

it('webhook listen that started first lets the service start on its data folder and verifies its webhooks', async () => {
  const port = await freePort();
  const env = { MEDLEY_DATA: data_dir };
  const listening = medley(['webhook', 'listen', '--port', String(port), '--count', '2', '--json'], env);
  const forge = async () => (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: 'x' })).status;
  await vi.waitFor(async () => expect(await forge()).toBe(401), { timeout: 120_000 });
  const started = spawn(process.execPath, [main], {
    env: { ...process.env, ...env, PORT: '0', MEDLEY_ALLOW_PRIVATE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  service = started;
  let output = '';
  started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await vi.waitUntil(() => output.includes('Make an image'), { interval: 20, timeout: 120_000 });
  const { accounts } = readObject((await medley(['account', 'list', '--json'], env)).out);
  const words = ['webhook', 'test', '--account', accounts[0]?.id ?? '', '--url', `http://127.0.0.1:${port}/`];
  expect(await medley(words, env)).toMatchObject({ code: 0, error: '' });
  expect(JSON.parse((await listening).out)).toMatchObject({ received: [{ verified: false }, { verified: true }] });
});
