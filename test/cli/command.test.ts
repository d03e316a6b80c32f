import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { withApp, withEngine } from '../../src/cli/command.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';

/** A database that no service has seen. */
let database: TestDatabase;
let folder = '';
beforeAll(async () => {
  database = await testDatabase();
  folder = clusterFolder();
  vi.stubEnv('DATABASE_URL', database.url);
  vi.stubEnv('MEDLEY_DATA', folder);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await database.drop();
  removeFolder(folder);
});

const engineSchemas = () => database.db.query(`select nspname from pg_namespace where nspname = 'pgboss'`);

it('a command opens the queue only if it declares so', async () => {
  await withApp(async (app) => expect(app).not.toHaveProperty('engine'));
  expect(await engineSchemas()).toEqual([]);
  await withEngine(async (app) => expect(app).toHaveProperty('engine'));
  expect(await engineSchemas()).toEqual([{ nspname: 'pgboss' }]);
});
