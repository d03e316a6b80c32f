import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeApp } from '../../src/app.ts';
import { makeBackup } from '../../src/backup/backup.ts';
import { readManifest } from '../../src/backup/manifest.ts';
import { checkBackup, restoreBackup } from '../../src/backup/restore.ts';
import { readConfig } from '../../src/config.ts';
import { openConnection } from '../../src/db/database.ts';
import { listTables } from '../../src/db/tables.ts';
import { preserved_tables } from '../../src/queue/pgboss-tables.ts';
import { startServer } from '../../src/server.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import { startWorker } from '../../src/worker.ts';
import { commandsBeside, commandsOf, medley, medleySoon, type Commands } from '../cli/medley.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import {
  changeManifest,
  chat,
  connected,
  copyBackup,
  fill,
  generate,
  quiet,
  rowsIn,
  rowsOf,
  scratch,
  yaml,
} from './setup.ts';

const log = pino({ level: 'silent' });
const place = scratch();
const clock = testClock();
let service: TestApp;
let client: Client;
let commands: Commands;
let receiver: Receiver;
const databases: TestDatabase[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startTestApp({ yaml, clock });
  client = await service.client();
  commands = commandsBeside(service);
  await fill(service, client, `${receiver.url}/told`);
});

afterAll(async () => {
  await service.stop();
  await receiver.stop();
  for (const database of databases) await database.drop();
  place.remove();
});

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await testDatabase({ state: 'empty' });
  databases.push(database);
  return database;
}

/** As migrations and a command leave it that nobody has made an account with. */
async function usedDatabase(): Promise<TestDatabase> {
  const database = await testDatabase({ state: 'engine' });
  databases.push(database);
  await connected(database.url, (connection) => connection.query(`insert into settings values ('secret', 'old')`));
  return database;
}

/** In many small parts. */
async function backUp(folder: string) {
  const { db, storage } = service.app;
  const parts = { db, files: { storage }, product_version: '0.1.0', secret_in_environment: false, progress: quiet };
  return makeBackup({ ...parts, part: { rows: 3 } }, folder);
}

/** A backup of a time in which nothing was written: the last use of a key comes seconds after it. */
async function backUpQuiet(folder: string) {
  const url = service.app.config.database_url ?? '';
  for (;;) {
    const before = await rowsOf(url);
    const manifest = await backUp(folder);
    const rows = await rowsOf(url);
    if (isDeepStrictEqual(before, rows)) return { manifest, rows };
    rmSync(folder, { recursive: true });
  }
}

/** Calls of every kind until they are stopped. */
function traffic(): () => Promise<void> {
  let goes_on = true;
  const loops = [1, 2, 3].map(async (seed) => {
    while (goes_on) {
      await generate(
        client,
        'sandbox/image',
        { prompt: 'Rain', width: 64, height: 64, seed },
        { webhook_url: `${receiver.url}/rain` },
      );
      await chat(client, 'Rain');
    }
  });
  return async () => {
    goes_on = false;
    await Promise.all(loops);
  };
}

async function succeeded(): Promise<number> {
  const rows = await service.app.db.query(`select from tasks where status = 'succeeded'`);
  return rows.length;
}

/** Commands are processes of their own, and on a busy machine slow to begin. */
/** Id, queue, priority and data of a job. */
const withoutState = (row: string) => row.split('\t').slice(0, 4).join('\t');

const patience = { timeout: 300_000 };

describe('a backup under load', patience, () => {
  const folder = place.path('under-load');
  let target: TestDatabase;
  let env: Record<string, string>;

  it('is made by the command beside the running service', async () => {
    receiver.answer('/waiting', 500);
    await generate(
      client,
      'sandbox/image',
      { prompt: '[[fail]]', width: 64, height: 64 },
      { webhook_url: `${receiver.url}/waiting` },
      60,
    );
    const hanging = { prompt: 'Hang', width: 64, height: 64 };
    receiver.answer('/hanging', 'hang');
    await generate(client, 'sandbox/image', hanging, { webhook_url: `${receiver.url}/hanging` }, 60);
    clock.stop(clock.now()); // the slow task is at work until the backup is made, however long that takes
    await generate(
      client,
      'sandbox/image',
      { prompt: '[[delay 1s]] slow', width: 64, height: 64 },
      { webhook_url: `${receiver.url}/slow` },
    );
    const stop = traffic();
    await vi.waitUntil(async () => (await succeeded()) >= 8, { timeout: 120_000, interval: 50 });
    const result = await commands.text('backup', folder, '--json').finally(stop);
    clock.run(Date.now());
    expect(result.code, result.error).toBe(0);
    const { rows, files, size_bytes } = JSON.parse(result.out);
    expect(Math.min(rows - 50, files - 3, size_bytes - 2_000)).toBeGreaterThan(0);
    await expectExactBooks(service.app);
  });

  it('can be read by its owner only', () => {
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      expect(statSync(join(folder, name)).mode & 0o077, name).toBe(0);
    }
  });

  it('is restored elsewhere by the command with exact books and a report of what will continue', async () => {
    target = await emptyDatabase();
    env = { DATABASE_URL: target.url, MEDLEY_DATA: place.path('elsewhere') };
    const result = await commandsOf(env).text('restore', folder, '--json');
    expect(result.code, result.error + result.out).toBe(0);
    const answer = JSON.parse(result.out);
    expect(answer).toMatchObject({ books: { ok: true }, migrated: [], left_out: [], secret_is_missing: false });
    expect(answer.unfinished_tasks).toBeGreaterThanOrEqual(1);
    expect(answer.waiting_deliveries).toBeGreaterThanOrEqual(1);
  });

  it('is there byte by byte', async () => {
    const there = await rowsOf(target.url);
    const backed_up = rowsIn(folder, await readManifest(folder));
    expect([...there.keys()].toSorted()).toEqual([...backed_up.keys()].toSorted());
    // The look at the restored books moves marks, and the engine writes down its settings.
    const looked_at = ['public.book_marks', 'public.book_key_marks', 'pgboss.queue'];
    for (const name of looked_at) expect(there.delete(name) && backed_up.delete(name)).toBe(true);
    // On a busy machine the jobs of a worker that is not there are given back meanwhile.
    for (const rows of [there, backed_up]) rows.set('pgboss.job', rows.get('pgboss.job')?.map(withoutState) ?? []);
    expect(there).toEqual(backed_up);
  });

  it('continues there: the key works, files open, and waiting work is done', async () => {
    const config_file = place.path('medley.yaml');
    writeFileSync(config_file, yaml);
    const app = await makeApp(readConfig({ ...env, PORT: '0', MEDLEY_CONFIG: config_file }), { log });
    try {
      await startServer(app);
      await startWorker(app);
      const call = (path: string) =>
        fetch(app.base_url() + path, { headers: { authorization: `Bearer ${client.key}` } });
      const { data } = (await (await call('/v1/tasks?status=succeeded&limit=100')).json()) as {
        data: { id: string }[];
      };
      const id = data.at(-1)?.id;
      const fresh = await fetch(`${app.base_url()}/v1/tasks/${id}/links`, {
        method: 'POST',
        headers: { authorization: `Bearer ${client.key}` },
      });
      const { data: output } = (await fresh.json()) as { data: { url: string; size_bytes: number }[] };
      expect(output).toHaveLength(2);
      for (const { url, size_bytes } of output) {
        expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(size_bytes);
      }
      await receiver.nth('/slow', 2); // once by the original, once by the copy
      const unfinished = () => app.db.query(`select id from tasks where completed_at is null`);
      await expect.poll(unfinished, { timeout: 120_000 }).toEqual([]);
      await expectExactBooks(app);
    } finally {
      await app.stop();
    }
  });
});

describe('a backup of a quiet service', patience, () => {
  const folder = place.path('quiet');

  it('has every row of every table and every file', async () => {
    receiver.answer('/hanging', 204);
    receiver.release('/hanging', 204);
    const waiting = () => service.app.db.query(`select from deliveries where state = 'waiting'`);
    await expect.poll(waiting).toEqual([]);
    await expect
      .poll(() => service.app.db.query(`select from tasks where completed_at is null`), { timeout: 120_000 })
      .toEqual([]);
    await generate(client, 'sandbox/image', { prompt: '[[delay 60s]]', width: 64, height: 64 });
    receiver.answer('/told', 500);
    await service.app.engine.stop();
    const { manifest, rows } = await backUpQuiet(folder);
    expect(rowsIn(folder, manifest)).toEqual(rows);
    const full = [...rowsIn(folder, manifest)].filter(([, lines]) => lines.length > 0).map(([name]) => name);
    for (const name of ['tasks', 'files', 'deliveries', 'chat_calls', 'invoices', 'ledger_entries', 'settings']) {
      expect(full).toContain(`public.${name}`);
    }
    expect(full).toEqual(expect.arrayContaining(['auth.user', 'pgboss.job']));
    expect(manifest.files.missing).toBe(0);
  });

  it('is restored without the jobs of another queue version, and every task has a new one', async () => {
    const old = copyBackup(folder, place.path('old-engine'));
    changeManifest(old, ({ schema }) => ({ schema: { ...schema, engine: 1 }, secret_in_environment: true }));
    const { url } = await emptyDatabase();
    const result = await commandsOf({ DATABASE_URL: url, MEDLEY_DATA: place.path('old') }, medleySoon).text(
      'restore',
      old,
    );
    expect(result.code, result.error + result.out).toBe(0);
    expect(result.out).toContain('The ledger is reconciled.');
    expect(result.out).toContain('will continue 1 unfinished tasks and send 0 webhooks');
    expect(result.out).toContain('MEDLEY_SECRET was set where the backup was made');
  });

  it('counts the files that the storage has lost', async () => {
    const [row] = await service.app.db.query<{ key: string }>('select storage_key as key from files');
    await service.app.storage.remove([row?.key ?? '']);
    expect((await backUp(place.path('without'))).files.missing).toBe(1);
  });

  it('that is made where the files are not says so and ends with 1', async () => {
    const { database_url = '' } = service.app.config;
    const elsewhere = commandsOf({ DATABASE_URL: database_url, MEDLEY_DATA: place.path('no-files') }, medleySoon);
    const result = await elsewhere.text('backup', place.path('files-elsewhere'));
    expect(result.code).toBe(1);
    expect(result.out).toMatch(/NONE OF THE \d+ FILES .* is MEDLEY_DATA right\?/);
  });

  it('leaves nothing behind when it fails, and refuses a folder with contents', async () => {
    const [row] = await service.app.db.query<{ key: string }>(
      `select files -> 0 ->> 'key' as key from tasks where files <> '[]'`,
    );
    const { path } = await fileOf(row?.key ?? '');
    const bytes = readFileSync(path);
    rmSync(path);
    mkdirSync(path); // reading a folder fails
    const failing = place.path('failing');
    await expect(backUp(failing)).rejects.toThrow('EISDIR');
    expect(readdirSync(failing)).toEqual([]);
    rmSync(path, { recursive: true });
    writeFileSync(path, bytes);
    expect(await commands.fails(1, 'backup', folder)).toBe(
      `${folder} is not empty: name a folder that is new or empty.`,
    );
  });

  it('is invalid if its process was killed', async () => {
    const [row] = await service.app.db.query<{ key: string }>(
      `select files -> 0 ->> 'key' as key from tasks where files <> '[]'`,
    );
    const { path } = await fileOf(row?.key ?? '');
    const bytes = readFileSync(path);
    rmSync(path);
    spawnSync('sh', ['-c', 'mkfifo "$0"', path]); // nobody writes into it: whoever reads it waits
    const killed = place.path('killed');
    const running = medley(['backup', killed], commandEnvironment(), (kill) => {
      const timer = setInterval(() => {
        if (!existsSync(join(killed, 'files.sha256'))) return;
        clearInterval(timer);
        kill();
      }, 20);
    });
    expect((await running).code).toBe(null);
    rmSync(path);
    writeFileSync(path, bytes);
    expect(readdirSync(killed)).toContain('tables');
    expect(await commands.fails(1, 'restore', '--check', killed)).toContain(
      'is no complete backup: it has no manifest.json',
    );
  });

  const spoilt: [string, RegExp, (folder: string) => void][] = [
    [
      'a changed byte',
      /tables\/public\.accounts\.copy\.gz has been changed\. Nothing was changed\./,
      (at) => flip(join(at, 'tables/public.accounts.copy.gz')),
    ],
    [
      'a part that is gone',
      /tables\/public\.tasks\.copy\.gz is missing/,
      (at) => rmSync(join(at, 'tables/public.tasks.copy.gz')),
    ],
    [
      'a part that was cut off',
      /has 10 bytes instead of \d+/,
      (at) => truncateSync(join(at, 'tables/public.tasks.copy.gz'), 10),
    ],
    ['a changed file', /files\/acct_\w+\/\w+\/0\.png has been changed/, (at) => flip(join(at, firstFile(at)))],
    ['a file that is gone', /files\/acct_\w+\/\w+\/0\.png is missing/, (at) => rmSync(join(at, firstFile(at)))],
    ['a changed list of files', /files\.sha256 has been changed/, (at) => flip(join(at, 'files.sha256'))],
    ['no manifest', /is no complete backup/, (at) => rmSync(join(at, 'manifest.json'))],
    ['half a manifest', /manifest\.json is damaged/, (at) => truncateSync(join(at, 'manifest.json'), 100)],
    [
      'a later format',
      /has format 2, and this version reads 1: restore it with a newer Medley/,
      (at) => changeManifest(at, () => ({ format: 2 })),
    ],
    [
      'a later schema',
      /is of another version \(9\.0\.0\)\. It has the migration 9999_later\.sql, which this version does not know/,
      (at) =>
        changeManifest(at, ({ schema }) => ({
          product: { name: 'medley', version: '9.0.0' },
          schema: { ...schema, migrations: [...schema.migrations, { name: '9999_later.sql', checksum: 'x' }] },
        })),
    ],
  ];
  it.each(spoilt)('with %s is refused before anything changes', async (name, message, spoil) => {
    const at = copyBackup(folder, place.path(name.replaceAll(' ', '-')));
    spoil(at);
    await expect(checkBackup(at, quiet)).rejects.toThrow(message);
  });

  it('whose rows do not fit leaves an empty database, which accepts another one', async () => {
    const at = copyBackup(folder, place.path('one-row-less'));
    changeManifest(at, ({ tables }) => ({ tables: tables.map((table) => ({ ...table, rows: table.rows + 1 })) }));
    const { db } = await usedDatabase();
    const storage = await openDiskStorage(place.path('refused'));
    const parts = { db, storage, log, progress: quiet };
    await expect(restoreBackup(parts, at, await readManifest(at))).rejects.toThrow(/rows instead of/);
    await restoreBackup(parts, folder, await readManifest(folder));
    expect(await db.query('select from accounts')).toHaveLength(2);
  });

  it('is not restored into a database that has data, is in use, or is newer', async () => {
    expect(await commands.fails(1, 'restore', folder)).toMatch(/^The database has data already \(.*accounts/);
    const { db } = await emptyDatabase();
    const storage = await openDiskStorage(place.path('unused'));
    const manifest = await readManifest(folder);
    const others = await openConnection(db, 'medley engine');
    const parts = { db, storage, log, progress: quiet };
    await expect(restoreBackup(parts, folder, manifest)).rejects.toThrow('A service or a command uses this database');
    await others.query(
      'create table migrations (number int primary key, name text, checksum text, applied_at timestamptz)',
    );
    await others.query(`insert into migrations values (9999, '9999_later.sql', 'x')`);
    await others.end();
    await expect(restoreBackup(parts, folder, manifest)).rejects.toThrow('its schema is newer than the backup');
  });
});

it('a backup includes every table of the migrations and uses only types that it supports', async () => {
  const folder = join(import.meta.dirname, '../../sql/migrations');
  const text = readdirSync(folder)
    .toSorted()
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');
  const tables = [...text.matchAll(/^create (?:unlogged )?table (?:if not exists )?(\S+)/gim)].map(([, name = '']) =>
    name.replaceAll('"', ''),
  );
  const dropped = [...text.matchAll(/^drop table (?:if exists )?(\S+?);?$/gim)].map(([, name]) => name);
  const renamed = [...text.matchAll(/^alter table (\S+) rename to (\S+);$/gim)];
  const nameNow = (name: string) => renamed.find(([, before]) => before === name)?.[2] ?? name;
  const left_out = ['leases', 'lessees', 'scheduled_backups', 'disks', ...dropped]; // what running nodes have taken or made, and what is gone
  const expected = [...tables.filter((name) => !left_out.includes(name)), 'migrations'].map((name) =>
    name.includes('.') ? name : `public.${nameNow(name)}`,
  );
  await connected(service.app.config.database_url ?? '', async (connection) => {
    const names = (await listTables(connection, preserved_tables)).map(({ name }) => name);
    expect(names.toSorted()).toEqual([...expected, ...preserved_tables].toSorted());
    // A sequence would have to be set, and a trigger would change what is put back. The one that there is changes what
    // no backup has: a row of an older one is restored before the migration that renames its table.
    const { rows: sequences } = await connection.query(
      `select 1 from pg_sequences where schemaname in ('public', 'auth')`,
    );
    const { rows: triggers } = await connection.query(
      `select tgname as name from pg_trigger where not tgisinternal and tgtype & 4 <> 0`,
    );
    expect({ sequences, triggers }).toEqual({
      sequences: [],
      triggers: [{ name: 'throttled_deliveries_say_endpoint' }],
    });
  });
});

function commandEnvironment(): Record<string, string> {
  const { database_url = '', data_dir } = service.app.config;
  return { DATABASE_URL: database_url, MEDLEY_DATA: data_dir };
}

/** Returns the path of a stored file on the disk. */
async function fileOf(key: string): Promise<{ path: string }> {
  const root = join(service.app.config.data_dir, 'files');
  const [, owner = '', name = ''] = key.split('/');
  const file_path = readdirSync(root, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.endsWith(join(owner, name)),
  );
  return { path: join(root, file_path ?? '') };
}

function firstFile(folder: string): string {
  return readFileSync(join(folder, 'files.sha256'), 'utf8').slice(66).split('\n')[0] ?? '';
}

function flip(path: string): void {
  const bytes = readFileSync(path);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}
