import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openListener, openNotifier } from '../../src/db/notify.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase({ state: 'empty' });
});

afterAll(() => database.drop());

/** Returns the messages that PostgreSQL itself delivers on `channel`. */
async function rawMessages(channel: string): Promise<{ messages: string[]; end(): Promise<void> }> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const messages: string[] = [];
  client.on('notification', (message) => messages.push(message.payload ?? ''));
  await client.query(`listen ${channel}`);
  return { messages, end: () => client.end() };
}

describe('a notifier', () => {
  it('sends each distinct payload of a burst once, in as few messages as fit', async () => {
    const notifier = openNotifier(database.db);
    const raw = await rawMessages('burst');
    const payloads = Array.from({ length: 2_000 }, (_, number) => `task_${String(number).padStart(20, '0')}`);
    for (const payload of [...payloads, ...payloads]) notifier.notify('burst', payload);
    await expect.poll(() => raw.messages.flatMap((message) => message.split(',')).length).toBe(2_000);
    expect(raw.messages.flatMap((message) => message.split(','))).toEqual(payloads);
    expect(raw.messages.length).toBeLessThanOrEqual(7);
    expect(Math.max(...raw.messages.map((message) => message.length))).toBeLessThan(8_000);
    await notifier.close();
    await raw.end();
  });

  it('makes at most one transaction per 5 ms of a steady stream', async () => {
    const notifier = openNotifier(database.db);
    const raw = await rawMessages('stream');
    const begun_at_ms = performance.now();
    // However slow the machine is: until it was a stream.
    for (let number = 0; performance.now() - begun_at_ms < 300 || raw.messages.length <= 5; number++) {
      notifier.notify('stream', `n${number}`);
      if (number % 10 === 0) await sleep(0);
    }
    const elapsed_ms = performance.now() - begun_at_ms;
    notifier.notify('stream', 'last');
    await notifier.close();
    await expect.poll(() => raw.messages.at(-1)).toMatch(/\blast$/);
    expect(raw.messages.length).toBeLessThanOrEqual(2 * (elapsed_ms / 5) + 2); // a statement may need two messages
    await raw.end();
  });

  it('sends what is waiting before it closes', async () => {
    const notifier = openNotifier(database.db);
    const raw = await rawMessages('closing');
    notifier.notify('closing', 'last');
    await notifier.close();
    await expect.poll(() => raw.messages).toEqual(['last']);
    notifier.notify('closing', 'too late');
    await raw.end();
  });

  it.each(['', 'a,b', 'x'.repeat(8_000)])('refuses a payload that cannot be joined', (payload) => {
    expect(() => openNotifier(database.db).notify('any', payload)).toThrow('a payload must');
  });
});

describe('a listener', () => {
  it('gets the payloads of its channels one by one until the subscription ends', async () => {
    const notifier = openNotifier(database.db);
    const listener = openListener(database.db);
    const heard: string[] = [];
    const [end] = await Promise.all([
      listener.subscribe('first', { onPayload: (payload) => heard.push(`first ${payload}`) }),
      listener.subscribe('Second channel', { onPayload: (payload) => heard.push(`second ${payload}`) }),
    ]);
    notifier.notify('first', 'a');
    notifier.notify('first', 'b');
    notifier.notify('Second channel', 'c');
    await expect.poll(() => heard.toSorted()).toEqual(['first a', 'first b', 'second c']);
    end?.();
    notifier.notify('first', 'd');
    notifier.notify('Second channel', 'e');
    await expect.poll(() => heard).toContain('second e');
    expect(heard).not.toContain('first d');
    await Promise.all([notifier.close(), listener.close()]);
  });

  it('reconnects when its connection is cut, reports the gap, and gets payloads again', async () => {
    const errors: string[] = [];
    const onError = (error: Error) => errors.push(error.message);
    const notifier = openNotifier(database.db, { onError });
    const listener = openListener(database.db, { onError });
    const heard: string[] = [];
    let gaps = 0;
    await listener.subscribe('cut', { onPayload: (payload) => heard.push(payload), onGap: () => (gaps += 1) });
    notifier.notify('cut', 'before');
    await expect.poll(() => heard).toEqual(['before']);
    await database.db.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name in ('medley listen', 'medley notify')`,
    );
    await expect.poll(() => gaps).toBeGreaterThan(0);
    notifier.notify('cut', 'after');
    await expect.poll(() => heard).toEqual(['before', 'after']);
    expect(errors.length).toBeGreaterThan(0);
    await Promise.all([notifier.close(), listener.close()]);
  });
});
