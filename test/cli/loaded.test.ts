import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { medley } from './medley.ts';

/** A command is over in the time in which it reads its modules: whoever waits for it waits for these. */
const reporter = pathToFileURL(join(import.meta.dirname, '../helpers/loaded-child.ts')).href;

let database: TestDatabase;
let folder = '';
let of_migration: string[] = [];
beforeAll(async () => {
  database = await testDatabase();
  folder = clusterFolder();
  of_migration = await loadedBy('migrate'); // the first `books` of a database would make the engine's tables
});
afterAll(async () => {
  await database.drop();
  removeFolder(folder);
});

/** The packages, and the folders of src/, that a command has loaded. */
async function loadedBy(line: string): Promise<string[]> {
  const env = { DATABASE_URL: database.url, MEDLEY_DATA: folder, NODE_OPTIONS: `--import=${reporter}` };
  const { code, error } = await medley(line.split(' '), env);
  expect(code, error).toBe(0);
  const urls: string[] = JSON.parse(error.split('\n').at(-1) ?? '');
  const names = urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/(src\/[^/]+)\//.exec(url)?.slice(1).join(''));
  return [...new Set(names.filter((name) => name !== undefined))].toSorted();
}

/** Packages that only the service needs, or one place in it. */
const never =
  '@scalar/fastify-api-reference better-auth fastify gpt-tokenizer h264-mp4-encoder mediabunny nodemailer pdfkit sharp typebox'.split(
    ' ',
  );

/** Packages that the commands which read the catalogue load in addition to the others. */
const of_catalog = ['ajv', 'yaml', 'src/providers'];

describe('a command loads only its modules', () => {
  it.each(['account list', 'margins', 'task list', 'books'])(
    'with the database and its modules for %s',
    async (line) => {
      const loaded = await loadedBy(line);
      expect(loaded).toEqual(expect.arrayContaining(['commander', 'pg', 'src/cli']));
      const more = [...never, ...of_catalog, 'pg-boss', 'pino', 'undici', 'src/api'];
      expect(loaded.filter((name) => more.includes(name))).toEqual([]);
    },
  );

  it.each(['--help', 'run --help', 'tasks --help', 'webhooks --help', 'completion bash --help'])(
    'without the database for %s, which a machine of a caller does not have',
    async (line) => {
      const loaded = await loadedBy(line);
      expect(loaded).toEqual(expect.arrayContaining(['commander', 'src/cli']));
      const more = [...never, ...of_catalog, 'pg', 'pg-boss', 'pino', 'undici', 'src/api', 'src/app', 'src/db'];
      expect(loaded.filter((name) => more.includes(name))).toEqual([]);
    },
  );

  it.each(['models', 'config check --default', 'account create --name A'])(
    'with the catalogue, too, for %s',
    async (line) => {
      const loaded = await loadedBy(line);
      expect(loaded).toEqual(expect.arrayContaining(of_catalog));
      const more = [...never, 'pg-boss', 'pino', 'src/api', 'src/dashboard'];
      expect(loaded.filter((name) => more.includes(name))).toEqual([]);
    },
  );

  it('with every module that creates tables for migrate', () => {
    expect(of_migration).toEqual(expect.arrayContaining([...of_catalog, 'pg-boss', 'pino', 'undici']));
  });
});
