import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareDataFolder } from '../../src/app/data-folder.ts';
import { NoAnswer } from '../../src/lib/time-limit.ts';
import { medleySoon } from '../cli/medley.ts';
import type { CommandResult } from '../cli/resident.ts';
import { dropDatabase, urlOf } from '../helpers/database.ts';
import { depth } from '../helpers/depth.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

let folder = '';
beforeAll(() => {
  folder = clusterFolder();
  writeFileSync(join(folder, 'file'), '');
  symlinkSync(join(folder, 'loop'), join(folder, 'loop'));
  spawnSync('mkfifo', [join(folder, 'pipe')]);
});
afterAll(() => removeFolder(folder));

async function start(env: Record<string, string>): Promise<CommandResult> {
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, PORT: '0', MEDLEY_DATA: join(folder, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const result: CommandResult = { code: null, out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => (result.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (result.error += chunk.toString()));
  await once(child, 'close');
  return { ...result, code: child.exitCode };
}

/** One line, and no stack. */
function expectSentence({ code, out, error }: CommandResult, sentence: RegExp): void {
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(error.trimEnd()).toMatch(sentence);
  expect(error).not.toMatch(/^\s+at /m);
}

describe('an unusable data folder is reported in a sentence by the service and by commands', () => {
  const folders: [string, () => string, RegExp][] = [
    [
      'a file',
      () => join(folder, 'file'),
      /^The data folder \S+ is a file\. Move it away, or set MEDLEY_DATA to a folder\.$/,
    ],
    [
      'below a file',
      () => join(folder, 'file/below'),
      /^The data folder \S+ lies below something that is a file \(ENOTDIR\): set MEDLEY_DATA to another folder\.$/,
    ],
    [
      'where none can be made, and mkdir tries for ever',
      () => '/proc/medley/data',
      /^The data folder \/proc\/medley\/data cannot be used: ENOENT/,
    ],
    [
      'where this user may not write',
      () => '/sys/medley',
      /^The data folder \/sys\/medley (is not writable for this user \((EPERM|EACCES)\)\. Allow it|is on a disk that is mounted read-only)/,
    ],
    [
      'a pipe',
      () => join(folder, 'pipe'),
      /^The data folder \S+ is a file\. Move it away, or set MEDLEY_DATA to a folder\.$/,
    ],
    [
      'a link to itself',
      () => join(folder, 'loop/below'),
      /^The data folder \S+ cannot be used: ELOOP: .*\. Correct the path, or set MEDLEY_DATA/,
    ],
    [
      'a name that is too long',
      () => join(folder, 'x'.repeat(300)),
      /^The data folder \S+ cannot be used: ENAMETOOLONG/,
    ],
  ];

  it.each(folders.slice(0, depth(4, folders.length)))('as %s', async (_, pathOf, sentence) => {
    const MEDLEY_DATA = pathOf();
    expectSentence(await start({ MEDLEY_DATA, DATABASE_URL: '' }), sentence);
    expectSentence(await medleySoon(['account', 'list'], { MEDLEY_DATA }), sentence);
  });

  it('after its time when it does not answer', async () => {
    const data = join(folder, 'stuck');
    mkdirSync(data);
    spawnSync('mkfifo', [join(data, 'postgres.json')]);
    const stuck = prepareDataFolder(data, 50);
    await expect(stuck).rejects.toThrow(NoAnswer);
    await expect(stuck).rejects.toThrow(/^The data folder \S+ does not answer \(0\.05 s\): is it on a network disk/);
    const writer = spawn('sh', ['-c', `echo > '${join(data, 'postgres.json')}'`]); // lets the reader end
    await once(writer, 'close');
    rmSync(data, { recursive: true }); // whoever looks into it would wait again
  });

  it('but not when it can be created, once, with the folders above it', async () => {
    const data = join(folder, 'a/b/c');
    expect([await prepareDataFolder(data), await prepareDataFolder(data)]).toEqual([true, false]);
  });
});

describe('an unreadable configuration file is reported in a sentence', () => {
  it.each([
    [
      'missing',
      'none.yaml',
      /none\.yaml:1:1 file: cannot be read: there is no such file \(ENOENT\)\. Correct its path/,
    ],
    ['a folder', '.', /:1:1 file: cannot be read: it is a folder \(EISDIR\)\. Name the file in it\.$/],
  ])('as %s', async (_, name, sentence) => {
    expectSentence(await start({ MEDLEY_CONFIG: join(folder, name) }), sentence);
  });

  it('after ten seconds as a pipe that nobody writes to', async () => {
    const result = await start({ MEDLEY_CONFIG: join(folder, 'pipe') });
    expect(result.code).not.toBe(0);
    expect(result.error).toMatch(
      /^\S+pipe does not answer \(10 s\): is it a pipe, or on a network disk that is away\? Correct MEDLEY_CONFIG\.\n$/,
    );
  });
});

describe('an address where nobody can listen is reported in a sentence', () => {
  async function database(work: (url: string) => Promise<void>, options = ''): Promise<void> {
    const name = `surroundings_${process.pid}`;
    const client = new pg.Client(urlOf('postgres'));
    await client.connect();
    try {
      await client.query(`create database ${name} ${options}`);
      await work(urlOf(name));
    } finally {
      await client.end();
      await dropDatabase(name);
    }
  }

  it('for a port in use, a foreign address and an unknown name', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const port = String((taken.address() as AddressInfo).port);
    await database(async (DATABASE_URL) => {
      expectSentence(
        await start({ DATABASE_URL, PORT: port }),
        new RegExp(`^Port ${port} on 127\\.0\\.0\\.1 is taken by another program, .* set PORT to a free one\\.$`),
      );
      expectSentence(
        await start({ DATABASE_URL, HOST: '192.0.2.1' }),
        /^HOST is 192\.0\.2\.1, which is no address of this machine\. Set it to/,
      );
      expectSentence(
        await start({ DATABASE_URL, HOST: 'no-such-host.invalid' }),
        /^HOST is "no-such-host\.invalid", a name that leads to no address\. Set it to/,
      );
    });
    taken.close();
  });

  it('a database that is not UTF8 or is read-only is refused with what to do', async () => {
    await database(async (DATABASE_URL) => {
      const sentence =
        /^The database "\w+" has the encoding LATIN1, which cannot hold every text; Medley needs UTF8\. Make one with: create database medley encoding 'UTF8' template template0\./;
      expectSentence(await start({ DATABASE_URL }), sentence);
      expectSentence(await medleySoon(['account', 'list'], { DATABASE_URL }), sentence);
    }, `encoding 'LATIN1' locale_provider libc locale 'C' template template0`);
    await database(async (DATABASE_URL) => {
      const url = `${DATABASE_URL}${DATABASE_URL.includes('?') ? '&' : '?'}options=-c%20default_transaction_read_only%3Don`;
      expectSentence(
        await start({ DATABASE_URL: url }),
        /^The database "\w+" is read-only, like a standby\. Set DATABASE_URL to the primary\.$/,
      );
    });
  });

  it('a user who may not create tables gets a message and no stack', async () => {
    await database(async (DATABASE_URL) => {
      const client = new pg.Client(DATABASE_URL);
      await client.connect();
      await client.query('revoke create on schema public from public, pg_database_owner');
      await client.end();
      const sentence =
        /^The user of DATABASE_URL may not make tables in that database \(permission denied .*\)\. Let it own the database: /;
      expectSentence(await start({ DATABASE_URL }), sentence);
    });
  });
});
