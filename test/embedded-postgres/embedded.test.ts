import { statSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  embeddedConnection,
  openEmbedded,
  startEmbedded,
  type Connection,
} from '../../src/embedded-postgres/embedded.ts';
import { ask, quick, startChild } from '../helpers/embedded.ts';
import { data_dir, logged, start, useOwnFolders } from './own-folder.ts';

useOwnFolders();

describe('a data folder', () => {
  test('is filled by the first start and kept by the second', async () => {
    const first = await start();
    expect(first.adopted).toBe(false);
    await ask(first.connection, 'create table kept (n bigint)');
    await ask(first.connection, 'insert into kept values (42)');
    const place = { ...first.connection };
    await Promise.all([first.stop(), first.stop()]);
    expect(await embeddedConnection(data_dir)).toBeUndefined();

    const second = await start();
    expect(second.connection).toEqual(place);
    expect(await ask(second.connection, 'select n from kept')).toEqual([{ n: '42' }]);
    expect(await embeddedConnection(data_dir)).toEqual(second.connection);
    await second.stop();
  });

  test('can be opened by nobody else: no TCP, a private socket folder, a password', async () => {
    const embedded = await startEmbedded({ data_dir });
    const { connection } = embedded;
    expect(statSync(connection.host).mode & 0o077).toBe(0);
    await expect(ask({ ...connection, password: 'guess' }, 'select 1')).rejects.toThrow(
      'password authentication failed',
    );
    const rows = await ask(
      connection,
      `select name, setting from pg_settings where name in
      ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_senders', 'listen_addresses') order by 1`,
    );
    expect(rows).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'full_page_writes', setting: 'on' },
      { name: 'listen_addresses', setting: '' },
      { name: 'max_wal_senders', setting: '0' },
      { name: 'synchronous_commit', setting: 'on' },
      { name: 'wal_level', setting: 'minimal' },
    ]);
    const [role] = await ask(connection, 'select rolsuper, rolcreatedb from pg_roles where rolname = current_user');
    expect(role).toEqual({ rolsuper: false, rolcreatedb: true });
    await embedded.stop();
  });
});

describe('two starts on one data folder', () => {
  test('give the second one a message within one process, too', async () => {
    const embedded = await start();
    await expect(start()).rejects.toThrow(`in use by process ${process.pid} `);
    // The refused start must not have loosened the first one's lock.
    expect((await startChild(data_dir)).answer.failed).toContain(`in use by process ${process.pid} `);
    await embedded.stop();
  });
});

describe('after a kill -9', () => {
  test('of the service, the next start takes its server over', async () => {
    const child = await startChild(data_dir);
    await ask(child.answer.connection, 'create table kept as select 7 as n');
    await child.kill();

    const embedded = await start();
    expect(embedded.adopted).toBe(true);
    expect(embedded.pid).toBe(child.answer.pid);
    expect(await ask(embedded.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    process.kill(embedded.pid, 'SIGKILL');
    await logged(/runs again/);
    expect(await ask(embedded.connection, 'select n from kept')).toEqual([{ n: 7 }]);
    await embedded.stop();
    expect(await embeddedConnection(data_dir)).toBeUndefined();
  });
});

describe('a command', () => {
  test('uses the database of the service and leaves it running', async () => {
    const child = await startChild(data_dir);
    const opened = await openEmbedded({ data_dir, settings: quick });
    expect(opened.connection).toEqual(child.answer.connection);
    expect(opened.url).toBe(child.answer.url);
    await opened.close();
    expect(await ask(child.answer.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    await child.stop();
  });

  test('without a service has its own database while it lasts, and others wait for it', async () => {
    const first = await openEmbedded({ data_dir, settings: quick });
    let closed = false;
    const use = async (place: Promise<{ connection: Connection }>): Promise<void> => {
      const { connection } = await place;
      expect(closed).toBe(true);
      expect(await ask(connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    };
    const second = openEmbedded({ data_dir, settings: quick });
    const service = start();
    const uses = [use(second).then(async () => (await second).close()), use(service)];
    expect(await ask(first.connection, 'select 1 as one')).toEqual([{ one: 1 }]);
    closed = true;
    await first.close();
    await Promise.all(uses);
    await (await service).stop(); // not before: the second may have come to use the server of the service
  });
});
