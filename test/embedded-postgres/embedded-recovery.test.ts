// nightly: each of its tests makes a cluster
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  DataFolderInUse,
  embeddedConnection,
  openEmbedded,
  startEmbedded,
} from '../../src/embedded-postgres/embedded.ts';
import { ask, keepBusy, quick, spawnChild, startChild } from '../helpers/embedded.ts';
import { data_dir, folder, log, logged, start, useOwnFolders } from './own-folder.ts';

useOwnFolders();

describe('a data folder', () => {
  test("sorts and upper-cases by code point and Unicode, whatever the host's locale", async () => {
    const embedded = await start();
    const rows = await ask(
      embedded.connection,
      `select upper('łąę') as upper, 'Z' < 'a' as "byte order", current_setting('server_encoding') as encoding`,
    );
    expect(rows).toEqual([{ upper: 'ŁĄĘ', 'byte order': true, encoding: 'UTF8' }]);
    await embedded.stop();
  });

  test('with a path too long for a socket has its socket in a short private folder', async () => {
    const deep_dir = join(folder, 'a'.repeat(120), 'data');
    mkdirSync(join(deep_dir, '..'));
    const embedded = await start(deep_dir);
    expect(Buffer.byteLength(embedded.connection.host)).toBeLessThan(90);
    expect(statSync(embedded.connection.host).mode & 0o777).toBe(0o700);
    expect(await ask(embedded.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await embeddedConnection(deep_dir)).toEqual(embedded.connection);
    await embedded.stop();
  });
});

describe('two starts on one data folder', () => {
  test('give the second one a message that names the first', async () => {
    const child = await startChild(data_dir);
    const failure = await start().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DataFolderInUse);
    expect(String(failure)).toContain(`This data folder is in use by process ${child.pid} `);
    await child.stop();
    await (await start()).stop();
  });

  test('at the same moment on an empty folder start one service', async () => {
    const children = await Promise.all([1, 2, 3].map(() => startChild(data_dir)));
    const winners = children.filter((child) => !child.answer.failed);
    expect(winners).toHaveLength(1);
    for (const loser of children.filter((child) => child.answer.failed)) {
      expect(loser.answer.failed).toContain(`in use by process ${winners[0]?.pid} `);
    }
    await Promise.all(children.map((child) => child.stop()));
  });
});

describe('after a kill -9', () => {
  test('of the service, a server with other settings is replaced', async () => {
    const child = await startChild(data_dir);
    await child.kill();
    const embedded = await startEmbedded({
      data_dir,
      settings: { ...quick, work_mem: '5MB' },
      log: (line) => log.push(line),
    });
    expect(embedded.adopted).toBe(false);
    expect(embedded.pid).not.toBe(child.answer.pid);
    expect(await ask(embedded.connection, 'show work_mem')).toEqual([{ work_mem: '5MB' }]);
    await embedded.stop();
  });

  test('of PostgreSQL with a busy query, it runs again and committed work is there', async () => {
    const embedded = await start();
    await ask(embedded.connection, 'create table kept as select 7 as n');
    await keepBusy(embedded.connection);
    const before = embedded.pid;
    process.kill(before, 'SIGKILL');
    await logged(/ended unexpectedly \(SIGKILL\)[^]*runs again/);
    expect(embedded.pid).not.toBe(before);
    expect(await ask(embedded.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    await embedded.stop();
  });

  test('of both, the next start waits for remaining processes and recovers', async () => {
    const child = await startChild(data_dir);
    await ask(child.answer.connection, 'create table kept as select 7 as n');
    await keepBusy(child.answer.connection);
    await child.kill();
    process.kill(child.answer.pid, 'SIGKILL');
    const embedded = await start();
    expect(embedded.adopted).toBe(false);
    expect(await ask(embedded.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    await embedded.stop();
  });

  test('in the middle of initdb, the next start begins again', async () => {
    const child = spawnChild(data_dir);
    const home = join(data_dir, 'postgres');
    const draft = () => (existsSync(home) ? readdirSync(home) : []).find((name) => name.startsWith('new-'));
    await expect
      .poll(() => existsSync(join(home, draft() ?? 'none', 'data', 'PG_VERSION')), { timeout: 120_000, interval: 1 })
      .toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(existsSync(join(home, 'data'))).toBe(false);

    const embedded = await start();
    expect(await ask(embedded.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await embedded.stop();
    await (await start()).stop();
    expect(draft()).toBeUndefined();
  });
});

describe('a command', () => {
  test('waits for a service that is just starting', async () => {
    const starting = startChild(data_dir);
    await expect
      .poll(() => existsSync(join(data_dir, 'postgres', 'owner.json')), { timeout: 120_000, interval: 5 })
      .toBe(true);
    const opened = await openEmbedded({ data_dir, settings: quick });
    const child = await starting;
    expect(opened.connection).toEqual(child.answer.connection);
    await opened.close();
    await child.stop();
  });
});

test('process ids that belong to other processes after a crash of the machine do not stop the start', async () => {
  const first = await start();
  const lock_file = join(first.connection.host, '.s.PGSQL.5432.lock');
  const pid_file = join(data_dir, 'postgres', 'data', 'postmaster.pid');
  const words = [readFileSync(pid_file, 'utf8'), readFileSync(lock_file, 'utf8')];
  const { uid, gid } = statSync(pid_file);
  await first.stop();
  // A process of PostgreSQL's own user: of another user's, PostgreSQL knows by itself that it is not one.
  const script = `
    const { spawn } = require('node:child_process'); const fs = require('node:fs');
    const other = spawn('sleep', ['60'], { uid: ${uid}, gid: ${gid}, stdio: 'ignore', detached: true, cwd: '/' });
    for (const [path, text] of ${JSON.stringify([
      [pid_file, words[0]],
      [lock_file, words[1]],
    ])}) {
      fs.writeFileSync(path, text.replace(/^\\d+/, other.pid), { mode: 0o600 }); fs.chownSync(path, ${uid}, ${gid});
    }
    console.log(other.pid); process.exit();`;
  const other = Number(spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' }).stdout);
  try {
    const second = await start();
    expect(await ask(second.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await second.stop();
  } finally {
    process.kill(other);
  }
});

test('Ctrl-C in the terminal does not reach PostgreSQL', async () => {
  const child = await startChild(data_dir);
  const session = (pid: number | undefined) =>
    spawnSync('ps', ['-o', 'sess=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim();
  expect(session(child.answer.pid)).not.toBe(session(child.pid));
  process.kill(-child.pid, 'SIGINT');
  expect(await ask(child.answer.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  await child.stop();
  expect(await embeddedConnection(data_dir)).toBeUndefined();
});

test('a server that does not react to a stop is killed', async () => {
  const embedded = await start();
  process.kill(embedded.pid, 'SIGSTOP');
  await embedded.stop(100);
  expect(log.join('\n')).toMatch(/sending SIGQUIT[^]*sending SIGKILL/);
  const again = await start();
  expect(await ask(again.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
  await again.stop();
});

test('a cluster of another major version is left alone', async () => {
  await (await start()).stop();
  const path = join(data_dir, 'postgres', 'data', 'PG_VERSION');
  chmodSync(path, 0o600);
  spawnSync('sh', ['-c', 'echo 17 > "$1"', 'sh', path]);
  await expect(start()).rejects.toThrow('was made by PostgreSQL 17');
});
