import { pino } from 'pino';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { makeBackup } from '../../src/backup/backup.ts';
import { eachPart, noteMoment, prepareMoment } from '../../src/backup/growing.ts';
import { readManifest } from '../../src/backup/manifest.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { growing_responses } from '../../src/conversations/stored-responses.ts';
import { openConnection } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import { close, hold } from '../../src/money/holds.ts';
import { addUpUsage } from '../../src/money/usage.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, openWallet, type Wallet } from '../money/setup.ts';
import { connected, quiet, rowsIn, rowsOf, scratch } from './setup.ts';

const place = scratch();
const day_ms = 86_400_000;
let database: TestDatabase;
let storage: Storage;
let wallet: Wallet;

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
  storage = await openDiskStorage(place.path('files'));
  wallet = await openWallet(database.db, { credit: 1_000_000_000n, now: daysAgo(70) });
});

afterAll(async () => {
  await database.drop();
  place.remove();
});

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * day_ms);
}

function backUp(name: string, onMoment: () => Promise<void>) {
  const files = { storage };
  const parts = { db: database.db, files, product_version: '0.1.0', secret_in_environment: false, progress: quiet };
  return makeBackup({ ...parts, part: { rows: 2 }, onMoment }, place.path(name));
}

/** The rows of a table in a backup, as lists of columns. */
async function backedUp(name: string, table: string): Promise<string[][]> {
  const rows = rowsIn(place.path(name), await readManifest(place.path(name))).get(`public.${table}`) ?? [];
  return rows.map((row) => row.split('\t'));
}

async function charge(ref: string, now: Date, whose = wallet): Promise<void> {
  await hold(database.db, holdOf(whose, ref, 1_000n), now);
  await close(database.db, { ...closeOf(whose, ref, 700n), units: { output_token: '3' } }, now);
}

it('sums that may change are read at the moment and agree with the ledger, older ones are read behind it', async () => {
  const { db } = database;
  for (const days of [65, 40, 10, 3]) await charge(`req_${days}`, daysAgo(days));
  await addUpUsage(db, { behind: 1 });
  const first_unsummed = hourOf(daysAgo(2));
  await charge('req_2', first_unsummed);
  await charge('req_before', new Date(first_unsummed.getTime() - 600_000)); // out of order, in the hour before
  const behind = await openWallet(db, { credit: 1_000_000n, now: daysAgo(20) });
  await charge('req_9', daysAgo(9), behind);
  await db.query('select add_up_usage($1, 100)', [behind.account_id]); // and not its margins
  await charge('req_now', daysAgo(0), behind);
  await charge('req_0', daysAgo(0));
  const refuse = `select add_refusals(array[$1, $1], array[$2, $3]::timestamptz[], array['limit', 'limit'],
    array['', ''], array['', ''], array['', ''], array[1, 1]::bigint[])`;
  await db.query(refuse, [wallet.account_id, hourOf(daysAgo(5)), hourOf(daysAgo(0))]);
  const before = await rowsOf(database.url);

  await backUp('sums', async () => {
    await charge('req_later', daysAgo(0));
    await addUpUsage(db, { behind: 1 });
    await db.query(refuse, [wallet.account_id, hourOf(daysAgo(0)), hourOf(daysAgo(-1))]);
    await db.query('delete from refusals where start < $1', [daysAgo(4)]);
  });

  for (const table of ['usage_sums', 'margin_sums', 'usage_marks'])
    expect(
      (await backedUp('sums', table)).map((row) => row.join('\t')),
      table,
    ).toEqual(before.get(`public.${table}`));
  expect((await backedUp('sums', 'refusals')).map(([, , reason, , , , , count]) => [reason, count])).toEqual([
    ['limit', '1'],
  ]);

  const client = await openConnection(db, 'medley backup');
  await prepareMoment(client);
  await noteMoment(client);
  const { rows } = await client.query<{ changing: number; all: number }>(
    `select (select count(*)::int from pg_temp.read_usage_sums) as changing, (select count(*)::int from usage_sums) as all`,
  );
  await client.end();
  expect(rows[0]?.changing).toBeGreaterThan(0);
  expect(rows[0]?.changing).toBeLessThan((rows[0]?.all ?? 0) / 2);

  const target = await testDatabase({ state: 'empty' });
  const manifest = await readManifest(place.path('sums'));
  await restoreBackup(
    { db: target.db, storage, log: pino({ level: 'silent' }), progress: quiet },
    place.path('sums'),
    manifest,
  );
  await addUpUsage(target.db, { behind: 1 });
  const { findings } = await checkBooks(target.db, { full: true });
  await target.drop();
  expect(findings).toEqual([]);
});

function hourOf(time: Date): Date {
  return new Date(time.getTime() - (time.getTime() % 3_600_000));
}

it('conversations and responses in the background come with all that is theirs, without those that came later', async () => {
  const { db } = database;
  const { account_id } = wallet;
  const converse = (id: string) =>
    db.query(
      `insert into conversations (account_id, id, content, created_at, used_at, expires_at)
       values ($1, $2, '', now(), now(), now() + interval '1 day')`,
      [account_id, id],
    );
  const say = (id: string, item: string) =>
    db.query(
      `select append_items($1, $2, (select turn from conversations where account_id = $1 and id = $2), now(), now() + interval '1 day',
         100, 1000, array[$3], array[null], array['\\x00'::bytea], array[1])`,
      [account_id, id, item],
    );
  const takeTurn = (id: string) =>
    db.query(`update conversations set turn = 'turn', turn_until = now() + interval '1 hour' where id = $1`, [id]);
  const respond = async (id: string, is_done: boolean) => {
    await hold(db, holdOf(wallet, `req_${id}`, 10n), daysAgo(0));
    await db.query(
      `with row as (
         insert into background_responses (account_id, id, request_id, model, currency, max_tokens, is_streamed, status, ended,
           created_at, begin_before, completed_at, done_at, expires_at)
         values ($1, $2, 'req_' || $2, 'm', 'USD', 1, false, case when $3 then 'completed' else 'queued' end,
           case when $3 then '{}'::jsonb end, now() - interval '1 minute', now(), case when $3 then now() end,
           case when $3 then now() end, now() + interval '1 day'))
       insert into background_contents (account_id, response_id, id, content, json_bytes) values ($1, $2, 'request', '', 0)`,
      [account_id, id, is_done],
    );
  };
  for (const id of ['conv_1', 'conv_2', 'conv_3', 'conv_5']) await converse(id);
  for (const item of ['item_1', 'item_2']) await say('conv_1', item);
  await say('conv_2', 'item_3');
  await takeTurn('conv_5');
  for (const id of ['resp_1', 'resp_2']) await respond(id, true);
  await respond('resp_3', false);

  await backUp('contents', async () => {
    await say('conv_1', 'item_4');
    await say('conv_5', 'item_5'); // ends its turn
    await takeTurn('conv_3');
    await db.query(`delete from conversations where id = 'conv_2'`);
    await converse('conv_4');
    await db.query(`delete from background_responses where id = 'resp_1'`);
    await db.query(
      `update background_responses set status = 'completed', ended = '{}', completed_at = now(), done_at = now() where id = 'resp_3'`,
    );
    await respond('resp_4', true); // by a node whose clock is a minute behind
  });

  const ids = async (table: string, column = 1) =>
    (await backedUp('contents', table)).map((row) => row[column] ?? '').toSorted();
  const conversations = await backedUp('contents', 'conversations');
  expect(conversations.map(([, id, , , items, , , , turn]) => [id, items, turn])).toEqual([
    ['conv_1', '3', '\\N'],
    ['conv_3', '0', '\\N'],
    ['conv_5', '0', 'turn'],
  ]);
  expect(await ids('conversation_items', 3)).toEqual(['item_1', 'item_2', 'item_4']);
  expect(await ids('background_responses')).toEqual(['resp_2', 'resp_3']);
  expect(await ids('background_contents')).toEqual(['resp_2', 'resp_3']);
  const [, waiting] = await backedUp('contents', 'background_responses');
  expect(waiting?.[7]).toBe('queued');
});

it('conversations of a playground come with their contents, and none without its owner', async () => {
  const { db } = database;
  const { account_id } = wallet;
  const own = async (user_id: string) => {
    await db.query(
      `with person as (
         insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt") values ($1, $1, $1 || '@example.com', true, now(), now()))
       insert into auth.member (id, "userId", "organizationId", role, "createdAt") values ($1, $1, $2, 'owner', now())`,
      [user_id, account_id],
    );
    await db.query(
      `insert into playground_owners (account_id, user_id, epoch, is_on, created_at) values ($2, $1, '', true, now())`,
      [user_id, account_id],
    );
  };
  const store = (user_id: string, n: number) =>
    db.query(
      `with row as (
         insert into playground_conversations (account_id, user_id, id, version, created_at, updated_at, expires_at)
         values ($1, $2, $3, 1, now() - interval '1 minute', now(), now() + interval '1 day'))
       insert into playground_contents (account_id, user_id, id, conversation_id, content, size_bytes, created_at)
       values ($1, $2, $3 || 'line', $3, '', 0, now())`,
      [account_id, user_id, `${n}`.padStart(24, '0')],
    );
  await own('ada');
  for (const n of [1, 2]) await store('ada', n);
  await backUp('playground', async () => {
    await db.query(`delete from playground_conversations where id like '%2'`);
    await own('ben'); // by a node whose clock is a minute behind
    await store('ben', 3);
  });
  const texts = async (table: string) =>
    (await backedUp('playground', table)).map(([, user_id, id]) => `${user_id} ${id}`);
  expect(await texts('playground_owners')).toHaveLength(1);
  expect(await texts('playground_conversations')).toEqual([`ada ${'1'.padStart(24, '0')}`]);
  expect(await texts('playground_contents')).toEqual([`ada ${'1'.padStart(24, '0')}line`]);
});

it('a part ends where its rows have enough bytes', async () => {
  const { db } = database;
  await db.query(
    `insert into stored_responses (account_id, id, item_ids, content, size_bytes, json_bytes, created_at, expires_at)
     select $1, 'resp_' || n, '{}', '', case n when 4 then 100 else 4 end, 4, now(), now() + interval '1 day' from generate_series(1, 9) n`,
    [wallet.account_id],
  );
  const client = await openConnection(db, 'medley backup');
  await prepareMoment(client);
  await noteMoment(client);
  const parts: string[][] = [];
  const take = async (rows: string) => {
    const part = await client.query<{ id: string }>(`select id from ${rows} r order by id`);
    parts.push(part.rows.map(({ id }) => id.slice(-1)));
  };
  await eachPart(client, growing_responses, take, { rows: 3, bytes: 8 });
  await client.end();
  expect(parts).toEqual([['1', '2'], ['3', '4'], ['5', '6'], ['7', '8'], ['9']]);
});

it('a backup rests after a part for three times as long as that took, while others work in the database', async () => {
  const { db, url } = database;
  const client = await openConnection(db, 'medley backup');
  await prepareMoment(client);
  await noteMoment(client);
  const readSlowly = async (rows: string) => {
    await client.query(`select pg_sleep(0.05) from (select from ${rows} r limit 1) one`);
  };
  const restsOf = async () => {
    const rests: number[] = [];
    const rest = async (ms: number) => rests.push(ms);
    await eachPart(client, growing_responses, readSlowly, { rows: 3, rest });
    return rests;
  };
  expect(await restsOf()).toEqual([]);
  const beside = await connected(url, async (other) => {
    const work = other.query('select pg_sleep(600)').catch(() => undefined); // until it is canceled
    await vi.waitUntil(async () => (await restsOf()).length > 0, { timeout: 60_000 });
    const rests = await restsOf();
    await client.query(`select pg_cancel_backend(pid) from pg_stat_activity where query = 'select pg_sleep(600)'`);
    await work;
    return rests;
  });
  await client.end();
  expect(beside).toHaveLength(4);
  expect(Math.min(...beside.slice(0, 3))).toBeGreaterThanOrEqual(150);
});
