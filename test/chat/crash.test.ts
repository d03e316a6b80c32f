import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { isAlive } from '../../src/embedded-postgres/process.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { quick, removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { hello, setStage } from './setup.ts';
import { chunk, done } from './streams.ts';

/** A PostgreSQL of this test alone: it is killed. Nothing is flushed there that nobody waits for. */
async function startServer() {
  const folder = clusterFolder();
  const embedded = await startEmbedded({
    data_dir: join(folder, 'data'),
    settings: { ...quick, wal_writer_delay: '10s' },
  });
  onTestFinished(async () => {
    await embedded.stop();
    removeFolder(folder);
  });
  return embedded;
}

type Process = { pid: number; backend_type: string };

async function processesOf(url: string): Promise<Process[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<Process>('select pid, backend_type from pg_stat_activity');
  await client.end();
  return rows;
}

/** Keeps what nobody waits for from reaching the disk, however long the test takes: the writer comes every 10 s by itself. */
function stopWalWriter(processes: readonly Process[]): void {
  const pid = processes.find(({ backend_type }) => backend_type === 'walwriter')?.pid ?? Number.NaN;
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => kill(pid));
}

/** Ends all processes of a server at once, and waits until they have: on a busy machine those that are left still write. */
async function crash(pid: number, processes: readonly Process[]): Promise<void> {
  const all = [pid, ...processes.map((each) => each.pid)];
  for (const each of all) kill(each);
  while (all.some(isAlive)) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Ends a process, if it is still there. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Keeps the node until the crash from saying that it is alive, which it does every 2 s and which waits for the disk, too. */
async function silenceNode(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined); // the crash
  await client.connect();
  await client.query('begin');
  const { rowCount } = await client.query('select from lessees for no key update');
  expect(rowCount).toBe(1);
}

type Entry = { type: string; revenue: bigint; held_is_back: boolean; is_late: boolean };

/** Makes a call during which the database crashes. Returns the ledger's entries about it. */
async function callThroughCrash(): Promise<Entry[]> {
  const embedded = await startServer();
  const stage = await setStage({ worker: false, env: { DATABASE_URL: embedded.url } });
  onTestFinished(() => stage.stop());
  const usage = chunk({}, { usage: { prompt_tokens: 1_000, completion_tokens: 70 } }, 'stop');
  const is_killed = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), is_killed.promise, usage, done] });
  await stage.client.call('GET', '/v1/balance'); // its share of requests waits for the disk, and with it all before
  const processes = await processesOf(embedded.url);
  await silenceNode(embedded.url);
  stopWalWriter(processes);
  const response = await fetch(`${stage.test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', stream: true, messages: hello }),
  });
  const { app } = stage.test;
  const { account_id } = stage.client;
  await app.holds.flush(account_id); // by no request: its share would wait for the disk once more, and with it the hold
  expect(await app.db.query('select from balances where account_id = $1 and held > 0', [account_id])).toHaveLength(1);
  await crash(embedded.pid, processes);
  is_killed.resolve();
  expect((await response.text()).endsWith(done)).toBe(true);

  const entries = () =>
    app.db.query<Entry>(
      `select type, revenue, held + sum(held) over () = held as held_is_back, created_at = max(created_at) over () as is_late
         from ledger_entries where event in ('hold', 'close') order by number`,
    );
  await expect.poll(entries).toHaveLength(2); // the answer does not wait for a server that takes longer to come back
  const { json } = await stage.client.call('GET', '/v1/balance');
  expect(json).toMatchObject({ held: { amount: '0.00' } });
  await expectExactBooks(app);
  return entries();
}

/** On a slow machine something else may have waited for the disk before the crash, and the hold with it. */
const crashes_max = 8;

test('a call is charged although the database crashes and loses its hold, and the books stay exact', async () => {
  let entries = await callThroughCrash();
  for (let crashes = 1; !entries[0]?.is_late && crashes < crashes_max; crashes++) entries = await callThroughCrash();
  expect(entries).toEqual([
    { type: 'hold', revenue: 0n, held_is_back: true, is_late: true }, // made again, with the settlement
    { type: 'settle', revenue: 2_700n, held_is_back: true, is_late: true },
  ]);
});
