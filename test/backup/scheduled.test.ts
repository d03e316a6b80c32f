import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { listBackups } from '../../src/backup/history.ts';
import { checkBackup } from '../../src/backup/restore.ts';
import { backupHealth, healthText, runScheduledBackup, type ScheduledParts } from '../../src/backup/scheduled.ts';
import { openServiceGauges } from '../../src/monitoring/service-gauges.ts';
import { commandsBeside, commandsOf, medley, readObject } from '../cli/medley.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { S3Imitation } from '../storage/s3/imitation.ts';
import { storageYaml } from '../storage/s3/subject.ts';
import { connected, fill, quiet, scratch, yaml } from './setup.ts';
import { signal } from '../queue/engine.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

const hour_ms = 3_600_000;
const place = scratch();
const clock = testClock();
const databases: TestDatabase[] = [];
const never = new AbortController().signal;
let imitation: S3Imitation;
let receiver: Receiver;
let service: TestApp;
let client: Client;
let number = 0;
let to = '';

beforeAll(async () => {
  imitation = await S3Imitation.start();
  receiver = await startReceiver();
  service = await startTestApp({ yaml, worker: false });
  client = await service.client();
  // Another node does the work, and ends: the job of a worker would come between the steps of these tests.
  const worker = await service.beside({ yaml, worker: true });
  await fill(service, client, `${receiver.url}/told`);
  await worker.stop();
});
afterAll(async () => {
  await service.stop();
  await imitation.stop();
  await receiver.stop();
  for (const database of databases) await database.drop();
  place.remove();
});
afterEach(async () => {
  imitation.fault = () => undefined;
  await service.configure(yaml);
  await service.app.db.query('delete from scheduled_backups');
});

/** Backups to a place of their own, at the clock of this file. */
async function schedule(settings: object = {}, more = ''): Promise<void> {
  to = place.path(`place-${++number}`);
  await service.configure(`${yaml}${more}\nbackup: ${JSON.stringify({ every: '6h', keep: 2, to, ...settings })}\n`);
}

/** As the job does it once a minute. */
const tick = (parts: Partial<ScheduledParts> = {}) =>
  runScheduledBackup({ ...service.app, clock, ...parts }, '0.1.0', never);

const states = async () => (await listBackups(service.app.db)).map(({ state }) => state);
const health = () => backupHealth(service.app.db, service.app.catalog.current.settings, clock.now());

async function restore(from: string, config: string | undefined) {
  const database = await testDatabase({ state: 'empty' });
  databases.push(database);
  const env = {
    DATABASE_URL: database.url,
    MEDLEY_DATA: place.path(`restored-${++number}`),
    ...(config !== undefined && { MEDLEY_CONFIG: config }),
  };
  // On a busy machine it shows its progress.
  const result = await medley(['restore', from, '--json'], env);
  expect(result.code, result.error).toBe(0);
  const books = await commandsOf(env).ok('books', '--full');
  return { database, restored: readObject(result.out), books };
}

const countIn = (url: string, table: string) =>
  connected(url, async (connection) => (await connection.query(`select from ${table}`)).rowCount);

describe('a backup by schedule', () => {
  it('is made by the running service, and a database that is restored from it has exact books', async () => {
    await schedule({ every: '30d' });
    const other = await startTestApp({ yaml: `version: 1\nbackup: { every: 30d, to: "${to}" }\n` });
    try {
      const { db } = other.app;
      await expect.poll(async () => (await listBackups(db))[0]?.state).toBe('done');
      const [backup] = await listBackups(db);
      await checkBackup(join(to, backup?.id ?? ''), quiet);
    } finally {
      await other.stop();
    }
    // The one with money, tasks and files in it.
    await tick();
    const [first_backup] = await listBackups(service.app.db);
    expect(first_backup).toMatchObject({ state: 'done', place: to, error: null });
    const { database, restored, books } = await restore(join(to, first_backup?.id ?? ''), undefined);
    expect(restored).toMatchObject({ files_missing: 0 });
    expect(books).toMatchObject({ ok: true, difference: '0.000000' });
    expect(books.entries).toBeGreaterThan(5);
    expect(await countIn(database.url, 'tasks')).toBe(await countIn(service.app.config.database_url ?? '', 'tasks'));
    expect(await countIn(database.url, 'scheduled_backups')).toBe(0);
    await expectExactBooks(service.app);
  });

  it('is made at once, then at multiples of its time; however many were missed, one makes up for them', async () => {
    await schedule();
    clock.stop('2026-03-01T03:00:00Z');
    await tick();
    await tick();
    expect(await states()).toEqual(['done']);
    clock.stop('2026-03-01T05:59:59Z');
    await tick();
    expect(await states()).toEqual(['done']);
    clock.stop('2026-03-01T06:00:00Z');
    await tick();
    expect(await states()).toEqual(['done', 'done']);
    clock.stop('2026-03-03T20:00:00Z');
    await tick();
    await tick();
    expect(await states()).toEqual(['done', 'done', 'removed']);
    clock.stop('2026-03-04T00:00:00Z');
    await tick();
    expect((await states()).filter((state) => state === 'done')).toHaveLength(2);
  });

  it('is made by one of two nodes', async () => {
    to = place.path(`place-${++number}`);
    const first = await startTestApp({
      yaml: `version: 1\nstorage: { shared: true }\nbackup: { every: 30d, to: "${to}" }\n`,
    });
    const second = await first.beside({
      yaml: `version: 1\nstorage: { shared: true }\nbackup: { every: 30d, to: "${to}" }\n`,
      worker: true,
    });
    try {
      await expect.poll(async () => (await listBackups(first.app.db))[0]?.state).toBe('done');
      await Promise.all([first, second].map(({ app }) => runScheduledBackup(app, '0.1.0', never)));
      expect(await listBackups(first.app.db)).toHaveLength(1);
      expect(readdirSync(to)).toHaveLength(1);
    } finally {
      await second.stop();
      await first.stop();
    }
  });

  it('goes after others only where it made them itself, and never the last good one', async () => {
    await schedule({ keep: 1 });
    mkdirSync(join(to, 'medley-20200101T000000Z-abcdef'), { recursive: true });
    writeFileSync(join(to, 'medley-20200101T000000Z-abcdef', 'manifest.json'), '{}');
    writeFileSync(join(to, 'notes.txt'), 'mine');
    for (const time of ['00', '06', '12']) {
      clock.stop(`2026-03-01T${time}:00:00Z`);
      await tick();
    }
    const [last] = await listBackups(service.app.db);
    expect(readdirSync(to).toSorted()).toEqual(['medley-20200101T000000Z-abcdef', 'notes.txt', last?.id].toSorted());
    // Somebody removes the newest by hand while a further one is made: the one before it stays.
    await schedule({ keep: 1 });
    clock.stop('2026-03-02T00:00:00Z');
    await tick();
    const [remaining] = await listBackups(service.app.db);
    clock.stop('2026-03-02T06:00:00Z');
    const removing: ScheduledParts['log'] = {
      info: ({ backup }: { backup?: unknown }) => rmSync(join(to, String(backup)), { recursive: true }),
      error: () => undefined,
    };
    await tick({ log: removing });
    expect(existsSync(join(to, remaining?.id ?? '', 'manifest.json'))).toBe(true);
    expect((await listBackups(service.app.db)).slice(0, 2).map(({ state }) => state)).toEqual(['removed', 'done']);
  });
});

describe('a scheduled backup that fails', () => {
  it('is shown, tried again after a minute, then after longer, and gone from the list of troubles once one succeeds', async () => {
    await schedule();
    writeFileSync(to, 'a file, no folder');
    clock.stop('2026-03-01T00:00:00Z');
    await tick();
    expect(await states()).toEqual(['failed']);
    clock.pass(59_000);
    await tick();
    expect(await states()).toEqual(['failed']);
    clock.pass(1_000);
    await tick();
    expect(await states()).toEqual(['failed', 'failed']);
    clock.pass(60_000);
    await tick();
    expect(await states()).toEqual(['failed', 'failed']);
    const state = await health();
    expect(state).toMatchObject({ failures: 2, is_late: true, last: undefined });
    expect(state && healthText(state, clock.now())).toMatch(/^none yet; 2 failed since: E(EXIST|NOTDIR)/);
    const doctor = await commandsBeside(service).text('doctor');
    expect(doctor).toMatchObject({ code: 1 });
    expect(doctor.out).toMatch(/FAIL {2}backups: none yet; 2 failed since/);
    const gauges = openServiceGauges();
    await gauges.read({ ...service.app, clock });
    const lines = gauges.metrics.flatMap((metric) => [...metric.lines()]);
    expect(lines).toEqual(expect.arrayContaining(['medley_backup_failures 2', 'medley_backup_late 1']));
    const listed = await commandsBeside(service).text('backups');
    expect(listed.out).toMatch(/failed .*E(EXIST|NOTDIR)/);
    rmSync(to);
    clock.pass(hour_ms);
    await tick();
    expect(await states()).toEqual(['done', 'failed', 'failed']);
    expect(await health()).toMatchObject({ failures: 0, is_late: false });
    clock.pass(13 * hour_ms);
    expect(await health()).toMatchObject({ failures: 0, is_late: true });
  });

  it('leaves nothing where the disk is full in the middle of it', async () => {
    await schedule();
    clock.stop('2026-03-01T00:00:00Z');
    const { storage } = service.app;
    const full = new Error('ENOSPC: no space left on device, write');
    const open: typeof storage.open = async (key, range) => {
      const file = await storage.open(key, range);
      file?.stream.destroy();
      const half = async function* () {
        yield Buffer.from('half');
        throw full;
      };
      return file && { ...file, stream: Readable.from(half()) };
    };
    await tick({ storage: { ...storage, open } });
    const [failed] = await listBackups(service.app.db);
    expect(failed).toMatchObject({ state: 'failed', error: full.message });
    expect(readdirSync(to)).toEqual([]);
  });

  it('is not begun where there is less room than the last one took', async () => {
    await schedule();
    clock.stop('2026-03-01T00:00:00Z');
    await tick();
    await service.app.db.query(`update scheduled_backups set size_bytes = 9e17`);
    clock.stop('2026-03-01T06:00:00Z');
    await tick();
    const [failed] = await listBackups(service.app.db);
    expect(failed?.error).toMatch(
      /of free space, and the last backup took .*: free some space, or keep fewer backups\.$/,
    );
    expect(readdirSync(to)).toHaveLength(1);
  });

  it('whose process was killed is removed and made again', async () => {
    await schedule();
    clock.stop('2026-03-01T00:00:00Z');
    const id = 'medley-20260228T000000Z-killed';
    mkdirSync(join(to, id, 'tables'), { recursive: true });
    writeFileSync(join(to, id, 'tables', 'public.tasks.copy.gz'), 'half');
    await service.app.db.query(
      `insert into scheduled_backups (id, place, host, started_at, state) values ($1, $2, 'dead', '2026-02-28', 'running')`,
      [id, to],
    );
    await tick();
    expect(readdirSync(to)).not.toContain(id);
    clock.pass(60_000);
    await tick();
    expect(await states()).toEqual(['done', 'failed']);
  });

  it('because the service stops is given back, and leaves nothing', async () => {
    await schedule();
    clock.stop('2026-03-01T00:00:00Z');
    const stopping = AbortSignal.abort(new Error('the engine is stopping'));
    const { app } = service;
    await expect(runScheduledBackup({ ...app, clock }, '0.1.0', stopping)).rejects.toThrow('the engine is stopping');
    expect(readdirSync(to)).toEqual([]);
    expect(await states()).toEqual(['failed']);
  });
});

describe('backups in a bucket', () => {
  const keysOf = (id: string) => [...imitation.objects.keys()].filter((key) => key.includes(id));

  it('are sent with their manifest last, restored from there, and removed with all they have', async () => {
    const storage = await storageYaml(imitation, place.path('').replace(/\/$/, ''));
    const config = place.path('bucket.yaml');
    const bucket = `s3://${imitation.bucket}/backups/daily`;
    writeFileSync(config, `version: 1\n${storage}\nbackup: { every: 6h, keep: 1, to: "${bucket}" }\n`);
    const other = await startTestApp({ env: { MEDLEY_CONFIG: config }, worker: false });
    try {
      clock.stop('2026-03-01T00:00:00Z');
      const parts = { ...other.app, clock };
      await runScheduledBackup(parts, '0.1.0', never);
      const [first] = await listBackups(other.app.db);
      expect(first).toMatchObject({ state: 'done', place: bucket });
      const keys = keysOf(first?.id ?? '-');
      expect(keys.at(-1)).toBe(`backups/daily/${first?.id}/manifest.json`);
      expect(keys.length).toBeGreaterThan(10);
      const { books } = await restore(`${bucket}/${first?.id}`, config);
      expect(books).toMatchObject({ ok: true });
      imitation.objects.set('backups/daily/other.txt', { bytes: Buffer.from('x'), etag: '"x"', headers: {} });
      clock.stop('2026-03-01T06:00:00Z');
      imitation.fault = (operation) => (operation === 'PutObject' ? 'denied' : undefined);
      await runScheduledBackup(parts, '0.1.0', never);
      expect(keysOf(first?.id ?? '-')).toEqual(keys);
      imitation.fault = () => undefined;
      clock.pass(60_000);
      await runScheduledBackup(parts, '0.1.0', never);
      const [second] = await listBackups(other.app.db);
      expect(second).toMatchObject({ state: 'done' });
      expect(keysOf(first?.id ?? '-')).toEqual([]);
      expect(imitation.objects.has('backups/daily/other.txt')).toBe(true);
      expect(readdirSync(join(other.app.config.data_dir, 'backup-being-sent'))).toEqual([]);
    } finally {
      await other.stop();
    }
  });

  it('leave no parts of a table when the process that sent them is killed, and spare what is beside them', async () => {
    const bucket = `s3://${imitation.bucket}/backups/killed`;
    const storage = await storageYaml(imitation, place.path('').replace(/\/$/, ''));
    await service.configure(`${yaml}\n${storage}\nbackup: { every: 6h, keep: 1, to: "${bucket}" }\n`);
    const [id, of_others] = ['medley-20260228T000000Z-killed', 'backups/killed/other.bin'];
    const upload = { initiated: new Date(), headers: {}, parts: new Map() };
    imitation.uploads.set('left', { key: `backups/killed/${id}/tables/public.tasks.copy.gz`, ...upload });
    imitation.uploads.set('of others', { key: of_others, ...upload });
    await service.app.db.query(
      `insert into scheduled_backups (id, place, host, started_at, state) values ($1, $2, 'dead', '2026-02-28', 'running')`,
      [id, bucket],
    );
    clock.stop('2026-03-01T00:00:00Z');
    await tick();
    expect([...imitation.uploads.values()].map(({ key }) => key)).toEqual([of_others]);
    imitation.uploads.clear();
  });

  it('leave nothing beside the data folder when Ctrl-C ends the restore that fetches them', async () => {
    const config = place.path('bucket-of-restore.yaml');
    writeFileSync(config, `version: 1\n${await storageYaml(imitation, place.path('').replace(/\/$/, ''))}\n`);
    imitation.objects.set('backups/half/manifest.json', { bytes: Buffer.from('{}'), etag: '"x"', headers: {} });
    const fetching = signal();
    imitation.fault = (operation) => {
      if (operation !== 'GetObject') return undefined;
      fetching.resolve();
      return 'hang';
    };
    const folder = place.path('interrupted');
    const env = { MEDLEY_DATA: join(folder, 'data'), MEDLEY_CONFIG: config };
    let end: (signal: NodeJS.Signals) => void = () => undefined;
    const restoring = medley(['restore', `s3://${imitation.bucket}/backups/half`], env, (kill) => (end = kill));
    await fetching.promise;
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^data\.restore-/)]);
    end('SIGINT');
    expect(await restoring).toMatchObject({ code: 130, out: '' });
    expect(readdirSync(folder)).toEqual([]);
  });
});

it.each([
  ['{ every: 6h }', /backup: must have .*to|backup.*to/],
  ['{ every: 6h, to: backups }', /backup\.to: must be an absolute path such as \/var\/backups\/medley, or s3:/],
  ['{ every: 6h, to: /x, keep: 0 }', /backup\.keep/],
  ['{ every: often, to: /x }', /backup\.every: must be a duration/],
])('medley.yaml with backup: %s is refused by its field', async (settings, message) => {
  await expect(service.configure(`${yaml}\nbackup: ${settings}\n`)).rejects.toThrow(message);
});
