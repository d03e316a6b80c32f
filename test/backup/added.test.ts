import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeApp, type App } from '../../src/app.ts';
import { makeBackup } from '../../src/backup/backup.ts';
import { addModels, addProvider } from '../../src/catalog/added/rows.ts';
import { readConfig } from '../../src/config.ts';
import { startServer } from '../../src/server.ts';
import { removeAllOld, startWorker } from '../../src/worker.ts';
import { commandsOf } from '../cli/medley.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import type { Imitation } from '../providers/imitations/imitation.ts';
import { openrouter_key, startOpenRouter } from '../providers/imitations/openrouter.ts';
import { quiet, scratch } from './setup.ts';

/** Providers and models that operators added in the dashboard, after a restore into an empty database. */

const secret = 'a secret of the operator';
const log = pino({ level: 'silent' });
const place = scratch();
const databases: TestDatabase[] = [];
let router: Imitation;

beforeAll(async () => {
  router = await startOpenRouter();
});

afterAll(async () => {
  await router.stop();
  for (const database of databases) await database.drop();
  place.remove();
});

/** A service with one provider of the dashboard and one of its models, of which a backup is made. */
async function backedUp(folder: string, env: Record<string, string>): Promise<Client> {
  const service = await startTestApp({ env });
  try {
    await add(service);
    const client = await service.client({ credit: '5' });
    const { db, storage } = service.app;
    const secret_in_environment = env['MEDLEY_SECRET'] !== undefined;
    await makeBackup(
      { db, files: { storage }, product_version: '0.1.0', secret_in_environment, progress: quiet },
      folder,
    );
    return client;
  } finally {
    await service.stop();
  }
}

async function add({ app }: TestApp): Promise<void> {
  const entry = { adapter: 'openai', base_url: `${router.url}/api/v1`, allow_private: true };
  const provider = { name: 'router', preset: 'openrouter', prefix: '', margin: '1.2', entry, api_key: openrouter_key };
  const now = new Date(app.clock.now());
  await addProvider(app.db, app.content_keys, provider, now);
  const price = [
    { unit: 'input_token' as const, per: 1_000_000, amount: '2.50' },
    { unit: 'output_token' as const, per: 1_000_000, amount: '10' },
  ];
  const routes = [{ provider: 'router', upstream_model: 'maker/talker' }];
  const model = { id: 'maker/talker', kind: 'chat' as const, price, routes };
  const others = { provider: 'router', shipped: null, margin: null };
  await addModels(
    app.db,
    [
      { id: 'maker/talker', entry: model, price: null, ...others },
      { id: 'maker/dear', entry: { ...model, id: 'maker/dear' }, price: price.toReversed(), ...others, margin: '3' },
    ],
    now,
  );
}

/** A database of its own with the backup, and what the command says. */
async function restored(folder: string, env: Record<string, string>) {
  const database = await testDatabase({ state: 'empty' });
  databases.push(database);
  const there = { DATABASE_URL: database.url, MEDLEY_DATA: place.path(`data-${databases.length}`) };
  const commands = commandsOf({ ...there, ...env });
  const result = await commands.text('restore', folder, '--json');
  expect(result.code, result.error + result.out).toBe(0);
  return { there, answer: JSON.parse(result.out) };
}

/** Starts a service on what was restored. */
async function started<T>(env: Record<string, string>, work: (app: App) => Promise<T>): Promise<T> {
  const app = await makeApp(readConfig({ ...env, PORT: '0' }), { log });
  try {
    await startServer(app);
    await startWorker(app);
    return await work(app);
  } finally {
    await app.stop();
  }
}

async function say(app: App, client: Client, model = 'maker/talker') {
  const response = await fetch(`${app.base_url()}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  return { status: response.status, cost: response.headers.get('x-cost-amount'), text: await response.text() };
}

async function expectWorks(app: App, client: Client): Promise<void> {
  expect(app.catalog.current.unused.get('provider router')).toBeUndefined();
  const spoken = await say(app, client);
  expect(spoken, spoken.text).toMatchObject({ status: 200, cost: '0.000072' }); // 12 × 3 and 3 × 12 per million
  expect(router.requestsFor('submit').at(-1)?.headers.authorization).toBe(`Bearer ${openrouter_key}`);
  const dear = await say(app, client, 'maker/dear');
  expect(dear, dear.text).toMatchObject({ status: 200, cost: '0.000060' }); // the price that was typed, without a margin
  await expectExactBooks(app);
}

describe.each<[title: string, env: Record<string, string>]>([
  ['with MEDLEY_SECRET', { MEDLEY_SECRET: secret }],
  ['without MEDLEY_SECRET', {}],
])('a backup %s of providers of the dashboard', (_, env) => {
  it('is restored into an empty database, where its models run at the same price', async () => {
    const folder = place.path(`backup-${Object.keys(env).length}`);
    const client = await backedUp(folder, env);
    const { there, answer } = await restored(folder, env);
    expect(answer).toMatchObject({ secret_is_missing: false, unreadable_keys: [], books: { ok: true } });
    await started({ ...there, ...env }, (app) => expectWorks(app, client));
  });
});

describe('a backup that is restored under other secrets', () => {
  it('names the providers whose keys cannot be read, and loses none of them', async () => {
    const folder = place.path('encrypted');
    const client = await backedUp(folder, { MEDLEY_SECRET: secret });
    const wrong = { MEDLEY_SECRET: 'quite another secret' };
    const { there, answer } = await restored(folder, wrong);
    expect(answer).toMatchObject({ secret_is_missing: false, unreadable_keys: ['router'] });
    for (const other of [wrong, {}]) {
      await started({ ...there, ...other }, async (app) => {
        expect(app.catalog.current.unused.get('provider router')).toMatch(/cannot be read with MEDLEY_SECRET/);
        expect((await say(app, client)).status).toBe(404);
      });
      const { out } = await commandsOf({ ...there, ...other }).text('doctor');
      expect(out).not.toContain(openrouter_key);
    }
    await started({ ...there, MEDLEY_SECRET: secret }, (app) => expectWorks(app, client));
    const both = { MEDLEY_SECRET: 'quite another secret', MEDLEY_SECRET_BEFORE: secret };
    await started({ ...there, ...both }, async (app) => {
      await expectWorks(app, client);
      await removeAllOld(app, new AbortController().signal); // the job that also encrypts again
    });
    await started({ ...there, ...wrong }, (app) => expectWorks(app, client));
  });

  it('says in words what to do, where there is no secret and where there is a wrong one', async () => {
    const folder = place.path('words');
    await backedUp(folder, { MEDLEY_SECRET: secret });
    for (const [env, words] of [
      [
        {},
        /set the same one, or its links and sessions stop working, and the keys of these providers of the dashboard: router/,
      ],
      [
        { MEDLEY_SECRET: 'quite another secret' },
        /MEDLEY_SECRET is not the one .* keys of these providers of the dashboard cannot be read: router\.\nSet that secret/,
      ],
    ] as const) {
      const database = await testDatabase({ state: 'empty' });
      databases.push(database);
      const data = place.path(`words-${databases.length}`);
      const result = await commandsOf({ DATABASE_URL: database.url, MEDLEY_DATA: data, ...env }).text(
        'restore',
        folder,
      );
      expect(result.out).toMatch(words);
      expect(result.out + result.error).not.toContain(openrouter_key);
    }
  });

  it('of a place without a secret encrypts the keys where there is one', async () => {
    const folder = place.path('plain');
    const client = await backedUp(folder, {});
    const { there, answer } = await restored(folder, { MEDLEY_SECRET: secret });
    expect(answer).toMatchObject({ unreadable_keys: [] });
    await started({ ...there, MEDLEY_SECRET: secret }, async (app) => {
      await expectWorks(app, client);
      await removeAllOld(app, new AbortController().signal);
      const rows = await app.db.query('select key_id from added_providers');
      expect(rows).toEqual([{ key_id: expect.stringMatching(/^[0-9a-f]{16}$/) }]);
    });
  });
});
