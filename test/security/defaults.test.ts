import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findHome } from '../../src/embedded-postgres/home.ts';
import { newId } from '../../src/lib/ids.ts';
import { listEndpoints } from '../../src/server.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { depth } from '../helpers/depth.ts';
import { startService, type Service } from '../hostile/service.ts';

/** Started with an empty environment, on nothing but a folder: no default opens anything. */
let service: Service;
let folder: string;
beforeAll(async () => {
  folder = clusterFolder();
  service = await startService(folder, { PORT: '0' }); // 8080 may be somebody else's here
});
afterAll(async () => {
  await service?.stop();
  removeFolder(folder);
});

const guesses = [
  '',
  'admin',
  'password',
  'test',
  'secret',
  'changeme',
  'medley',
  'sk-1234',
  'null',
  'undefined',
  'mdl_',
];

test('no common key opens any endpoint in any header, cookie or parameter', async () => {
  const endpoints = listEndpoints().filter((endpoint) => !endpoint.public);
  for (const [at, { method, path }] of endpoints.entries()) {
    // All of them at one endpoint, and one at each: they have one way in.
    for (const guess of guesses.slice(0, depth(at === 0 ? guesses.length : 1, guesses.length))) {
      const tries: Record<string, string>[] = [
        { authorization: `Bearer ${guess}` },
        { 'x-api-key': guess },
        { authorization: `Basic ${btoa(`admin:${guess}`)}` },
        { cookie: `session=${guess}; token=${guess}` },
      ];
      for (const headers of tries) {
        const url = `${service.url}${path.replace(/\{\+?\w+\}/, 'x')}?api_key=${guess}&key=${guess}`;
        const { status } = await fetch(url, { method, headers });
        expect(status, `${method} ${path} ${JSON.stringify(headers)}`).toBe(401);
      }
    }
  }
});

test('no common secret signs a link', async () => {
  const key = `${newId('acct')}/${newId('task')}/0.png`;
  const exp = Math.floor(Date.now() / 1000) + 3600;
  for (const guess of guesses) {
    const sig = createHmac('sha256', guess).update(`${key}\n${exp}`).digest('base64url');
    expect((await fetch(`${service.url}/files/${key}?exp=${exp}&sig=${sig}`)).status).toBe(404);
  }
});

test('the service listens on loopback only by default', async () => {
  expect(new URL(service.url).hostname).toBe('127.0.0.1');
  const outer = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  for (const { address, internal } of outer.filter(({ family }) => family === 'IPv4')) {
    expect(await answers(address, Number(new URL(service.url).port)), address).toBe(internal);
  }
});

async function answers(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  const opened = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
  });
  socket.destroy();
  return opened;
}

test("no common password opens the service's database", async () => {
  const home = findHome(join(folder, '.medley'));
  expect(home).toBeDefined();
  const host = join(home?.path ?? '', 'run');
  for (const user of ['postgres', 'medley']) {
    for (const password of guesses) {
      const client = new pg.Client({ host, port: 5432, user, password, database: 'postgres' });
      client.on('error', () => undefined);
      await expect(client.connect()).rejects.toThrow(
        /password authentication failed|SASL|password must be a string|permission denied/i,
      );
      await client.end().catch(() => undefined);
    }
  }
});

test('the key of the first start is shown once on the terminal and is new each time', async () => {
  const key = /API key, shown only now: (mdl_\w{36})/.exec(service.greeting)?.[1] ?? '';
  expect((await fetch(`${service.url}/v1/key`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200);
  expect(service.log()).not.toContain(key);
});
