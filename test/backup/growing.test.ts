import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findAccount } from '../../src/accounts/accounts.ts';
import { makeBackup } from '../../src/backup/backup.ts';
import type { PartOptions } from '../../src/backup/growing.ts';
import { readManifest } from '../../src/backup/manifest.ts';
import { restoreBackup } from '../../src/backup/restore.ts';
import { service_rules } from '../../src/chat/books.ts';
import { checkBooks, type Finding } from '../../src/money/books.ts';
import { deleteContent } from '../../src/contents/stored.ts';
import { deleteResponse, storeResponse } from '../../src/conversations/stored-responses.ts';
import { openDiskStorage } from '../../src/storage/disk.ts';
import { removeOutput } from '../../src/tasks/files.ts';
import { resend, sendTest } from '../../src/webhooks/manual.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { testDatabase } from '../helpers/database.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { chat, connected, quiet, rowsIn, rowsOf, scratch, yaml } from './setup.ts';

const patience = { timeout: 300_000 };
const place = scratch();
const clock = testClock();
let service: TestApp;
let receiver: Receiver;
let clients: Client[];

beforeAll(async () => {
  receiver = await startReceiver();
  service = await startTestApp({ yaml, clock });
  clients = await Promise.all([service.client(), service.client(), service.client()]);
});

afterAll(async () => {
  await service.stop();
  await receiver.stop();
  place.remove();
});

const input = { prompt: 'Rain', width: 64, height: 64 };

/** A chat call, and a task with a webhook and an Idempotency-Key; answers the task's id. */
async function work(client: Client, seed: number, prompt = 'Rain'): Promise<string> {
  await chat(client, 'Rain');
  const body = { model: 'sandbox/image', input: { ...input, prompt, seed }, webhook_url: `${receiver.url}/rain` };
  const { status, json } = await client.call('POST', '/v1/generate', body, { 'idempotency-key': `${seed} ${prompt}` });
  expect(status).toBe(202);
  return json.id;
}

function backUp(folder: string, more: { part: PartOptions; onMoment?: () => Promise<void> }) {
  const { db, storage } = service.app;
  const parts = { db, files: { storage }, product_version: '0.1.0', secret_in_environment: false, progress: quiet };
  return makeBackup({ ...parts, ...more }, folder);
}

async function findingsOfRestored(folder: string): Promise<Finding[]> {
  const target = await testDatabase({ state: 'empty' });
  const storage = await openDiskStorage(`${folder}-elsewhere`);
  const parts = { db: target.db, storage, log: service.app.log, progress: quiet };
  await restoreBackup(parts, folder, await readManifest(folder));
  const { findings } = await checkBooks(target.db, { full: true, more: service_rules });
  await target.drop();
  return findings;
}

async function untilQuiet(): Promise<void> {
  const { db } = service.app;
  const unfinished = () =>
    db.query(`select id from tasks where completed_at is null union all select id from deliveries where state = 'waiting'
      union all select ref from open_holds union all
      select ref from ledger_entries e where kind = 'chat' and event = 'close' and not exists (select from chat_calls c where c.id = ref)`);
  await expect.poll(unfinished, { timeout: 120_000 }).toEqual([]);
}

/** Tables that calls and tasks write. Of a key they write its last use alone, and that a second later. */
const moved = `accounts balances budgets open_holds ledger_entries idempotency_keys tasks attempts deliveries
  delivery_attempts chat_calls`
  .split(/\s+/)
  .map((name) => `public.${name}`);

it('a backup has every row as it was at its moment, whatever happens before its parts are read', patience, async () => {
  const [client] = clients;
  const { app } = service;
  if (!client) throw new Error('no client');
  const ids: string[] = [];
  for (let seed = 0; seed < 7; seed++) ids.push(await work(client, seed));
  await untilQuiet();
  clock.stop(clock.now()); // so that it is at work until the clock goes on
  const slow = await work(client, 7, '[[delay 1s]] slow');
  await expect.poll(() => app.db.query(`select from chat_calls`)).toHaveLength(8);
  await expect.poll(() => app.db.query(`select from tasks where status = 'running'`)).toHaveLength(1);

  const [sent_again] = await app.db.query<{ id: string }>('select id from deliveries where task_id = $1', [ids[3]]);
  let before = new Map<string, string[]>();
  const onMoment = async () => {
    before = await rowsOf(app.config.database_url ?? '');
    clock.run(Date.now());
    receiver.answer('/rain', 'hang');
    await resend(app, { account_id: client.account_id, id: sent_again?.id ?? '' });
    await expect.poll(() => receiver.open('/rain')).toBe(1);
    receiver.answer('/rain', 204);
    const account = await findAccount(app.db, client.account_id);
    if (account) await sendTest(app, account, `${receiver.url}/test`, '{}');
    await removeOutput(app, { account_id: client.account_id, task_id: ids[2] ?? '' });
    const late = await service.client();
    for (const each of [client, late]) await work(each, 8);
    const finished = () => app.db.query(`select from tasks where completed_at is null`);
    await expect.poll(finished, { timeout: 120_000 }).toEqual([]);
  };
  const folder = place.path('moment');
  const manifest = await backUp(folder, { part: { rows: 3 }, onMoment });
  receiver.release('/rain', 204);

  const backed_up = rowsIn(folder, manifest);
  const others = (rows: string[] | undefined) =>
    rows?.filter((row) => !row.includes(sent_again?.id ?? '') && !row.includes(`\t${ids[2]}\t`));
  for (const name of moved) expect(others(backed_up.get(name)), name).toEqual(others(before.get(name)));
  const idsOf = (rows: string[] | undefined) => rows?.map((row) => row.split('\t', 1));
  expect(idsOf(backed_up.get('public.api_keys'))).toEqual(idsOf(before.get('public.api_keys')));
  expect(backed_up.get('public.tasks')).toHaveLength(8);
  const [again] = backed_up.get('public.deliveries')?.filter((row) => row.includes(sent_again?.id ?? '')) ?? [];
  expect(again).toContain('\tdelivered\t1\t0\tf\t');
  expect(backed_up.get('public.tasks')?.find((row) => row.includes(slow))).toContain('\trunning\t');
  expect(await findingsOfRestored(folder)).toEqual([]);
});

it('contents of calls and stored responses are read behind the moment, without those that came later', async () => {
  const { app } = service;
  const client = await service.client();
  const { account_id } = client;
  const store = (id: string) => {
    const [created_at, expires_at] = [new Date(), new Date(Date.now() + 86_400_000)];
    return storeResponse(app, { account_id, id, previous_id: null, item_ids: [], json: '{}', created_at, expires_at });
  };
  const contents = `insert into chat_contents (account_id, id, api_key_id, content, size_bytes, created_at, expires_at)
    select account_id, id, key_id, '', 0, created_at, now() + interval '1 day' from chat_calls where account_id = $1
    on conflict do nothing returning id`;
  const written = async (calls: number) => {
    const records = () => app.db.query('select from chat_calls where account_id = $1', [account_id]);
    await expect.poll(records).toHaveLength(calls);
    return (await app.db.query<{ id: string }>(contents, [account_id])).map(({ id }) => id);
  };
  for (const words of ['One', 'Two', 'Three']) await chat(client, words);
  const ids = await written(3);
  for (const id of ['resp_1', 'resp_2']) await store(id);
  const onMoment = async () => {
    await chat(client, 'Four');
    await written(4);
    await store('resp_3');
    await deleteContent(app.db, account_id, ids[1] ?? '');
    await deleteResponse(app, account_id, 'resp_1', new Date());
  };
  const folder = place.path('contents');
  const backed_up = rowsIn(folder, await backUp(folder, { part: { rows: 1 }, onMoment }));
  const there = (table: string) => {
    const rows = backed_up.get(table)?.map((row) => row.split('\t')) ?? [];
    return rows.flatMap(([owner, id]) => (owner === account_id ? (id ?? '') : [])).toSorted();
  };
  expect(there('public.chat_contents')).toEqual([ids[0], ids[2]].toSorted());
  expect(there('public.stored_responses')).toEqual(['resp_2']);
  expect(await findingsOfRestored(folder)).toEqual([]);
});

/** Begins of transactions of the backup, as somebody else sees them, until `signal`. */
async function transactionsSeen(signal: AbortSignal): Promise<Set<string>> {
  const seen = new Set<string>();
  const look = `select xact_start::text as at from pg_stat_activity where application_name = 'medley backup' and xact_start is not null`;
  await connected(service.app.config.database_url ?? '', async (client) => {
    while (!signal.aborted) for (const { at } of (await client.query<{ at: string }>(look)).rows) seen.add(at);
  });
  return seen;
}

it('a backup beside calls and tasks has many short snapshots, and is restored with exact books', patience, async () => {
  const ended = new AbortController();
  const working = clients.map(async (client, i) => {
    // As much as a backup needs: on a busy machine one that others outgrow has no end.
    for (let seed = 100; seed < 200 && !ended.signal.aborted; seed++) await work(client, seed * 10 + i);
  });
  const { db } = service.app;
  const entries = () => db.query<{ count: bigint }>('select count(*) as count from ledger_entries');
  await expect.poll(async () => Number((await entries())[0]?.count), { timeout: 120_000 }).toBeGreaterThan(200);
  const seeing = transactionsSeen(ended.signal);
  const folder = place.path('beside');
  const manifest = await backUp(folder, { part: { rows: 10 } });
  ended.abort();
  expect((await seeing).size).toBeGreaterThan(10);
  await Promise.all(working);
  expect(rowsIn(folder, manifest).get('public.ledger_entries')?.length).toBeGreaterThan(200);
  expect(await findingsOfRestored(folder)).toEqual([]);
});

it('a backup fails, and leaves nothing, where a month of the ledger is closed meanwhile', patience, async () => {
  const onMoment = async () => {
    await service.app.db.query(
      `insert into ledger_openings values ('acct_old', '2026-01-01', 1, 0, 0, 0, 0, 0, 0, 0, 0)`,
    );
  };
  const folder = place.path('closed');
  await expect(backUp(folder, { part: { rows: 1_000 }, onMoment })).rejects.toThrow(
    'A month of the ledger was closed meanwhile: take another backup.',
  );
  expect(readdirSync(folder)).toEqual([]);
});
