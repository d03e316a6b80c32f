import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { medley } from './medley.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

let database: TestDatabase;
let folder = '';
let service: ChildProcess | undefined;
beforeAll(async () => {
  database = await testDatabase();
  folder = clusterFolder();
  writeFileSync(
    join(folder, 'medley.yaml'),
    `
version: 1
models:
  - id: acme/only
    kind: chat
    price: [{ unit: output_token, per: 1000000, amount: "1.00" }]
    routes: [{ provider: sandbox, upstream_model: chat }]
`,
  );
});
afterAll(async () => {
  service?.kill('SIGKILL');
  await database.drop();
  removeFolder(folder);
});

it('commands in another terminal find the port, the file and the addresses of the running service', async () => {
  const env = { DATABASE_URL: database.url, MEDLEY_DATA: join(folder, 'data') };
  const settings = { PORT: '0', MEDLEY_CONFIG: join(folder, 'medley.yaml'), MEDLEY_ALLOW_PRIVATE: '1' };
  const started = spawn(process.execPath, [main], {
    env: { ...process.env, MEDLEY_SECRET: 'a secret of the service', ...env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  service = started;
  started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await vi.waitUntil(() => output.includes('Make an image'), { interval: 20, timeout: 120_000 });
  const url = /running at (\S+)/.exec(output)?.[1] ?? '';
  const note = join(folder, 'data/service.json');
  expect(readFileSync(note, 'utf8')).not.toContain('a secret');

  const link = await medley(['login-link'], env);
  expect(new URL(link.out.trim()).origin).toBe(url);
  expect((await fetch(link.out.trim())).status).toBe(200);
  expect((await medley(['models'], env)).out).toContain('acme/only');
  expect((await medley(['config', 'check'], env)).out).toContain(join(folder, 'medley.yaml'));
  const accounts = JSON.parse((await medley(['account', 'list', '--json'], env)).out);
  const test = ['webhook', 'test', '--account', accounts.accounts[0].id, '--url', `${url}/v1/nothing`];
  const tried = await medley(test, env);
  expect(tried.out, tried.error).toContain('Not delivered'); // it was tried
  expect((await medley(test, { ...env, MEDLEY_ALLOW_PRIVATE: '0' })).error).toContain('MEDLEY_ALLOW_PRIVATE=1');
  const elsewhere = await medley(['login-link'], { ...env, PORT: '8123' });
  expect(new URL(elsewhere.out.trim()).port).toBe('8123');

  started.kill('SIGTERM');
  await once(started, 'close');
  expect(existsSync(note)).toBe(false);
});

it('commands ignore what a killed service left behind', async () => {
  const env = { DATABASE_URL: database.url, MEDLEY_DATA: join(folder, 'data') };
  const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(dead, 'close');
  writeFileSync(join(folder, 'data/service.json'), JSON.stringify({ pid: dead.pid, env: { PORT: '9999' } }));
  expect(new URL((await medley(['login-link'], env)).out.trim()).port).toBe('8080');
  writeFileSync(join(folder, 'data/service.json'), '{"pid":');
  expect((await medley(['login-link'], env)).code).toBe(0);
});
