import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedConnection } from '../../src/embedded-postgres/embedded.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { commandsOf, medley, medleySoon, readObject, type Commands } from './medley.ts';

/** No service runs: each command starts the embedded PostgreSQL for itself and stops it again. */
describe('a command without a running service', () => {
  let folder = '';
  let commands: Commands;

  beforeAll(() => {
    folder = clusterFolder();
    commands = commandsOf({ MEDLEY_DATA: join(folder, 'data'), PORT: '0' }, medleySoon);
  });
  afterAll(() => removeFolder(folder));

  it('creates the database as migrate, two of which run one after the other, and leaves nothing running', async () => {
    const [first, second] = await Promise.all([commands.ok('migrate'), commands.ok('migrate')]);
    expect(first.applied).toEqual(second.applied);
    expect(first.applied[0]).toBe('0100_baseline.sql');
    expect(first.pending).toEqual([]);
    expect(await embeddedConnection(join(folder, 'data'))).toBeUndefined();
  });

  it('creates accounts and keys that the next command finds', async () => {
    const { id } = await commands.ok('account', 'create', '--name', 'Alone', '--credit', '2');
    const key = await commands.ok('key', 'create', '--account', id);
    const { keys } = await commands.ok('key', 'list', '--account', id);
    expect(keys.map((each) => each.id)).toEqual([key.id]);
    expect(await commands.ok('books')).toMatchObject({ ok: true, accounts: 1, entries: 1 });
  });

  it('finds everything in order as doctor and shows where things are', async () => {
    const { ok, checks } = await commands.ok('doctor');
    expect(ok).toBe(true);
    expect(checks.map((check) => [check.name, check.ok])).toEqual(
      'node database clock storage catalogue certificates books journal secret backups search sign_in address'
        .split(' ')
        .map((name) => [name, true]),
    );
    const detail = (name: string) => checks.find((check) => check.name === name)?.detail ?? '';
    expect(detail('storage')).toContain(`in ${join(folder, 'data')}`);
    const [, place = ''] = / in (\/.+), durable$/.exec(detail('database')) ?? [];
    expect(existsSync(join(place, 'PG_VERSION'))).toBe(true);
  });

  it('ends with 1 as doctor when something is wrong', async () => {
    const result = await medleySoon(['doctor', '--json'], {
      MEDLEY_DATA: join(folder, 'data'),
      MEDLEY_CONFIG: join(import.meta.dirname, '../../medley.example.yaml'), // models without a usable route
    });
    expect(result).toMatchObject({ code: 1, error: '' });
    const { ok, checks } = readObject(result.out);
    expect(ok).toBe(false);
    expect(checks.filter((check) => !check.ok).map((check) => check.name)).toEqual(['catalogue']);
  });

  it('names a data folder that it creates once, and not with --json', async () => {
    const data = join(folder, 'another');
    const result = await medley(['account', 'list'], { MEDLEY_DATA: data });
    expect(result).toMatchObject({
      code: 0,
      error: `The data folder ${data} was created now. If your service uses another one, set MEDLEY_DATA to it.\n`,
    });
    expect(await medleySoon(['account', 'list'], { MEDLEY_DATA: data })).toMatchObject({ code: 0, error: '' });
  });

  it('does not report on another service with a database of its own', async () => {
    const data = join(folder, 'external');
    mkdirSync(data);
    writeFileSync(join(data, 'service.json'), JSON.stringify({ pid: process.pid, env: {}, external: true }));
    const message = await commandsOf({ MEDLEY_DATA: data }, medleySoon).fails(2, 'account', 'list');
    expect(message).toMatch(/uses a database of its own, .* Set DATABASE_URL as the service has it\.$/);
  });

  it('shows the typed command in its help', async () => {
    expect((await medleySoon(['account', 'create', '--help'], {})).out).toMatch(
      /^Usage: npm run -s medley -- account create \[options\]\n/,
    );
  });

  it('says as config check without a file how to get one', async () => {
    const message = await commands.fails(2, 'config', 'check');
    expect(message).toMatch(
      /^There is no configuration file: .* copy medley\.example\.yaml and set MEDLEY_CONFIG to the copy\.$/,
    );
  });

  it('says as reload that no service answers', async () => {
    expect(await commands.fails(1, 'reload')).toBe('No running service answered.');
  });
});

describe('a failed command', () => {
  const commands = commandsOf({ MEDLEY_DATA: join(import.meta.dirname, 'never-made') }, medleySoon);

  it('reports an unreachable database in a sentence', async () => {
    const unreachable = commandsOf({ DATABASE_URL: 'postgres://127.0.0.1:1/x' }, medleySoon);
    expect(await unreachable.fails(1, 'account', 'list')).toContain('ECONNREFUSED');
  });

  it('reports a wrong setting or configuration as a usage error', async () => {
    expect(await commandsOf({ PORT: 'many' }, medleySoon).fails(2, 'account', 'list')).toContain(
      'PORT must be a number',
    );
    const without_file = commandsOf({ MEDLEY_CONFIG: '/nowhere/medley.yaml' }, medleySoon);
    expect(await without_file.fails(2, 'models')).toContain('medley.yaml:1:1 file: cannot be read');
  });

  it('reports a wrong word as a usage error with the likely one, but help is not an error', async () => {
    expect(await commands.fails(2, 'account', 'lst')).toContain("unknown command 'lst'");
    expect((await commands.text('account', 'lst')).error).toContain('Did you mean list?');
    expect(await commands.text('account')).toMatchObject({ code: 2, out: '' });
    expect(await commands.text('--help')).toMatchObject({ code: 0, error: '' });
    expect((await commands.text('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(existsSync(join(import.meta.dirname, 'never-made'))).toBe(false);
  });
});
