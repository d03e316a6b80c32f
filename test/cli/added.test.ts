import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addModels, addProvider } from '../../src/catalog/added/rows.ts';
import { contentKeys } from '../../src/db/content.ts';
import { openDatabase } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { medley } from './medley.ts';

/** Commands know what operators added in the dashboard. */

let database: TestDatabase;
const folder = mkdtempSync(join(tmpdir(), 'medley-added-'));
const keys = contentKeys({ secret: 'a secret of the operator', secret_before: undefined });
const entry = { adapter: 'openai', base_url: 'https://api.example.com/v1' };

beforeAll(async () => {
  database = await testDatabase();
  const db = openDatabase({ connection: { connectionString: database.url } });
  const now = new Date();
  const common = { preset: null, prefix: '', margin: '1', entry };
  await addProvider(db, keys, { ...common, name: 'acme', api_key: 'a-secret-key' }, now);
  await addProvider(db, keys, { ...common, name: 'gone', entry: { adapter: 'telepathy' }, api_key: undefined }, now);
  const price = [{ unit: 'output_token' as const, per: 1_000_000, amount: '1' }];
  const model = { id: 'acme/one', kind: 'chat' as const, price, routes: [{ provider: 'acme' }] };
  await addModels(
    db,
    [{ id: 'acme/one', provider: 'acme', entry: model, shipped: null, margin: null, price: null }],
    now,
  );
  await db.close();
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const env = () => ({ DATABASE_URL: database.url, MEDLEY_DATA: join(folder, 'data') });

it('doctor names what is broken among the providers of the dashboard, and no key', async () => {
  const { out } = await medley(['doctor'], env());
  expect(out).toMatch(/catalogue: .*added in the dashboard: provider gone: .*is not an adapter/);
  expect(out).not.toMatch(/provider acme|a-secret-key/); // without MEDLEY_SECRET, which the service may well have
});

it('config check names what the file uses in their place, and what is broken', async () => {
  const file = join(folder, 'medley.yaml');
  writeFileSync(file, `version: 1\nproviders: { acme: { adapter: openai, base_url: "https://api.example.com/v2" } }\n`);
  const { out, code } = await medley(['config', 'check', file], env());
  expect(code).toBe(0);
  expect(out).toContain(
    'warning: added in the dashboard: provider acme: medley.yaml has a provider of this name, which is used.',
  );
  expect(out).toMatch(/warning: added in the dashboard: provider gone: .*is not an adapter/);
});

it('an alias of models that were added in the dashboard is in order, and one of others is not', async () => {
  const file = join(folder, 'aliases.yaml');
  const aliases = '{ smart: { models: [{ model: acme/one }, { model: acme/two }] } }';
  writeFileSync(file, `version: 1\naliases: ${aliases}\n`);
  const check = await medley(['config', 'check', file], env());
  const doctor = await medley(['doctor'], { ...env(), MEDLEY_CONFIG: file });
  for (const { out } of [check, doctor]) {
    expect(out).toContain('aliases.smart.models[1].model: there is no model acme/two in this file: it is passed over.');
    expect(out).not.toContain('there is no model acme/one');
  }
});
