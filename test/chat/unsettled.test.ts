import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import { service_rules } from '../../src/chat/books.ts';
import { replayJournal, unrecordedEntry, unsettledEntry } from '../../src/chat/unsettled.ts';
import { openJournal, readJournals } from '../../src/storage/journal.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { startMuteProxy, type MuteProxy } from '../helpers/mute-proxy.ts';
import { startTestApp } from '../helpers/app.ts';
import { freePort } from '../helpers/free-port.ts';
import { hello, yamlOf } from './setup.ts';
import { chunk, done } from './streams.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
const cli = join(import.meta.dirname, '../../src/cli.ts');

type Place = {
  database: TestDatabase;
  proxy: MuteProxy;
  upstream: ChatUpstream;
  folder: string;
  /** Lets the streams that begin from now on wait for their end until the function that it returns is called. */
  holdEnds(): () => void;
};

/** A database behind a proxy, and an upstream whose stream has one word and an end, worth 2.01. */
async function setPlace(): Promise<Place> {
  process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
  const database = await testDatabase({ state: 'engine' });
  const proxy = await startMuteProxy(database.url);
  const upstream = await startChatUpstream();
  const folder = clusterFolder();
  const usage = chunk({}, { usage: { prompt_tokens: 5_000, completion_tokens: 200_000 } }, 'stop');
  let may_end = Promise.resolve();
  upstream.script('gpt-x', () => ({ stream: [chunk({ content: 'Hi' }), may_end, usage, done] }));
  const holdEnds = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    may_end = promise;
    return resolve;
  };
  onTestFinished(async () => {
    await upstream.stop();
    await proxy.stop();
    await database.drop();
    removeFolder(folder);
  });
  return { database, proxy, upstream, folder, holdEnds };
}

/** Begins the stream; resolves at its first bytes. */
async function begin(url: string, key: string) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', stream: true, max_tokens: 500, messages: hello }),
  });
  const id = response.headers.get('x-request-id') ?? '';
  const reader = response.body?.getReader();
  await reader?.read();
  const rest = async () => {
    let text = '';
    for (let part; (part = await reader?.read()) && !part.done;) text += Buffer.from(part.value).toString();
    return text;
  };
  return { id, rest };
}

test('a stream that ends while the database refuses is charged once with its record, although the node is killed before the database returns', async () => {
  const { database, proxy, upstream, folder, holdEnds } = await setPlace();
  const data_dir = join(folder, 'data');
  const config_file = join(folder, 'medley.yaml');
  writeFileSync(config_file, yamlOf(upstream));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    PORT: String(port),
    MEDLEY_DATA: data_dir,
    MEDLEY_CONFIG: config_file,
    DATABASE_URL: proxy.url,
  };
  let child: ChildProcess | undefined;
  let output = '';
  const start = async () => {
    output = '';
    const started = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    child = started;
    started.stdout.on('data', (chunk_: Buffer) => (output += chunk_.toString()));
    await vi.waitFor(() => expect(output).toContain('hello.png'), { timeout: 120_000, interval: 50 });
  };
  onTestFinished(async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  await start();
  const key = /mdl_[0-9A-Za-z]{36}/.exec(output)?.[0] ?? '';

  const end = holdEnds();
  const { id, rest } = await begin(url, key);
  proxy.refuse(true);
  end();
  expect((await rest()).endsWith(done)).toBe(true); // the caller does not wait for the database, which is still away
  const waiting = () => readJournals(data_dir);
  await vi.waitFor(async () => expect((await waiting()).length).toBe(2), { timeout: 120_000, interval: 50 });
  expect((await waiting()).map((entry) => entry.id)).toEqual([`end ${id}`, `record ${id}`]);
  const [file = ''] = readdirSync(join(data_dir, 'journal'));
  expect(statSync(join(data_dir, 'journal', file)).mode & 0o777).toBe(0o600);
  expect(
    JSON.stringify(await waiting(), (_, value) => (typeof value === 'bigint' ? String(value) : value)),
  ).not.toMatch(/Hello|Hi/);
  child?.kill('SIGKILL');
  if (child) await once(child, 'exit');

  proxy.refuse(false);
  expect(await journalOutput(env)).toContain('2 entries wait to be booked, the oldest since');

  await start();
  await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 120_000, interval: 50 });
  const { db } = database;
  const record = await fetch(`${url}/v1/chat/${id}`, { headers: { authorization: `Bearer ${key}` } });
  expect(await record.json()).toMatchObject({ cost: { exact: '2.010000' } });
  expect(await db.query(`select type, revenue from ledger_entries where ref = $1 and event = 'close'`, [id])).toEqual([
    { type: 'settle', revenue: 2_010_000n },
  ]);
  expect(await db.query('select cost, output_tokens from chat_calls where id = $1', [id])).toEqual([
    { cost: 2_010_000n, output_tokens: 200_000 },
  ]);
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});

/** Returns the line of `medley doctor` about the journal. */
async function journalOutput(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const doctor = spawn(process.execPath, [cli, 'doctor', '--json'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  let output = '';
  doctor.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()));
  await once(doctor, 'close');
  const { checks }: { checks: { name: string; detail: string }[] } = JSON.parse(output);
  return checks.find(({ name }) => name === 'journal')?.detail;
}

function openPlain(database: TestDatabase) {
  const db = openDatabase({ connection: { connectionString: database.url } });
  onTestFinished(() => db.close());
  return db;
}

test('a service that stops while the database is away journals its open settlements, and a call is charged once when both are back', async () => {
  const { database, proxy, upstream, holdEnds } = await setPlace();
  const options = { worker: false, yaml: yamlOf(upstream), env: { DATABASE_URL: proxy.url } };
  const service = await startTestApp(options);
  onTestFinished(() => service.stop());
  const client = await service.client();
  const data_dir = service.app.config.data_dir;
  const end = holdEnds();
  const { id, rest } = await begin(service.url, client.key);
  proxy.refuse(true);
  const stopping = service.app.stop().catch(() => undefined);
  end();
  await rest().catch(() => undefined);
  await stopping;
  expect((await readJournals(data_dir)).map((entry) => entry.id)).toContain(`end ${id}`);

  proxy.refuse(false);
  const next = await startTestApp({ ...options, env: { ...options.env, MEDLEY_DATA: data_dir } });
  onTestFinished(() => next.stop());
  await vi.waitFor(async () => expect(await readJournals(data_dir)).toEqual([]), { timeout: 120_000, interval: 50 });
  const entries = await database.db.query(`select type from ledger_entries where ref = $1 and event = 'close'`, [id]);
  expect(entries).toEqual([{ type: 'settle' }]);
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});

test('a call that fails while the database is away is in the journal, and gives its money back as soon as that is back', async () => {
  const { database, proxy, upstream } = await setPlace();
  const cutting = Promise.withResolvers<void>();
  upstream.script('gpt-x', { stream: [cutting.promise], then: 'cut' });
  const service = await startTestApp({ worker: false, yaml: yamlOf(upstream), env: { DATABASE_URL: proxy.url } });
  onTestFinished(() => service.stop());
  const client = await service.client();
  const failing = fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', max_tokens: 500, messages: hello }),
  });
  await vi.waitFor(() => expect(upstream.requests.length).toBe(1), { timeout: 120_000, interval: 5 });
  proxy.refuse(true);
  cutting.resolve();
  const response = await failing;
  expect(response.status).toBe(502);
  const id = response.headers.get('x-request-id');
  const waiting = () => readJournals(service.app.config.data_dir);
  expect((await waiting()).map((entry) => entry.id)).toContain(`end ${id}`);

  proxy.refuse(false);
  await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 120_000, interval: 50 });
  const entries = await database.db.query(`select type from ledger_entries where ref = $1 and event = 'close'`, [id]);
  expect(entries).toEqual([{ type: 'release' }]);
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});

test('a record whose end another process still has to settle releases no hold, and is written with the charge once that is known', async () => {
  const { database, upstream } = await setPlace();
  const service = await startTestApp({ worker: false, yaml: yamlOf(upstream), env: { DATABASE_URL: database.url } });
  onTestFinished(() => service.stop());
  const { app } = service;
  const { db } = database;
  const client = await service.client();
  const { id: first, rest } = await begin(service.url, client.key);
  await rest();
  const rows = () => db.query<{ record: Record<string, unknown> }>('select to_jsonb(c) as record from chat_calls c');
  await vi.waitFor(async () => expect((await rows()).length).toBe(1), { timeout: 120_000, interval: 50 });
  const [row] = await rows();
  const ref = `${first}-2`;
  const { account_id } = client;
  await app.holds.hold({
    account_id,
    key_id: String(row?.record['key_id']),
    ref,
    amount: 3_000_000n,
    model: 'acme/oai',
    kind: 'chat',
    expires_in_ms: 3_600_000,
  });
  const record = { ...row?.record, created_at: String(row?.record['created_at']), id: ref, cost: '2010000' };
  await app.journal.write([unrecordedEntry(app.clock, { account_id, ref, is_unsettled: true, record })]);

  expect(await replayJournal(app)).toBe(0);
  expect(await db.query('select * from ledger_entries where ref = $1 and event <> $2', [ref, 'hold'])).toEqual([]);
  expect(app.journal.pending().map(({ id }) => id)).toEqual([`record ${ref}`]);

  await app.holds.settle({ account_id, ref, cost: 1_500_000n, beyond_hold: true });
  const recorded = () => db.query('select cost from chat_calls where id = $1', [ref]);
  await vi.waitFor(async () => expect(await recorded()).toEqual([{ cost: 1_500_000n }]), { timeout: 120_000 });
  await vi.waitFor(() => expect(app.journal.pending()).toEqual([]), { timeout: 120_000 });
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});

test('a node that only works settles what another process has left in its folder, whichever node sweeps', async () => {
  const { database, upstream, folder } = await setPlace();
  const yaml = `${yamlOf(upstream)}storage: { shared: true }\n`;
  const service = await startTestApp({ worker: false, yaml, env: { DATABASE_URL: database.url } });
  onTestFinished(() => service.stop());
  const { app } = service;
  const { account_id, key_id } = await service.client();
  const swept = Promise.withResolvers<void>();
  await app.engine.schedule('tasks.sweep', 3_600_000, async () => swept.resolve()); // the next one is in an hour
  await swept.promise;
  const data_dir = join(folder, 'worker');
  const ref = 'req_left';
  const left = openJournal(data_dir);
  const hold = { account_id, key_id, ref, amount: 3_000_000n, model: 'acme/oai', kind: 'chat' };
  await left.write([unsettledEntry(app.clock, { account_id, ref, cost: 2_010_000n, beyond_hold: true }, hold)]);
  await left.close();
  const journal = join(data_dir, 'journal');
  for (const name of readdirSync(journal)) utimesSync(join(journal, name), 0, 0); // nobody has touched it for long

  const env = {
    ...process.env,
    MEDLEY_ROLE: 'worker',
    MEDLEY_DATA: data_dir,
    MEDLEY_CONFIG: app.config.config_file,
    DATABASE_URL: database.url,
  };
  const child = spawn(process.execPath, [main], { env, stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const charges = () =>
    database.db.query(`select type, revenue from ledger_entries where ref = $1 and event = 'close'`, [ref]);
  await vi.waitFor(async () => expect(await charges()).toEqual([{ type: 'settle', revenue: 2_010_000n }]), {
    timeout: 120_000,
    interval: 50,
  });
  await vi.waitFor(async () => expect(await readJournals(data_dir)).toEqual([]), { timeout: 120_000, interval: 50 });
});

/** The journal is asked after 3 s of it. */
const outage_ms = 5_000;

test('a stream whose end the journal cannot take waits for the database, and is charged once when that is back', async () => {
  const { database, proxy, upstream, holdEnds } = await setPlace();
  const service = await startTestApp({ worker: false, yaml: yamlOf(upstream), env: { DATABASE_URL: proxy.url } });
  onTestFinished(() => service.stop());
  const client = await service.client();
  writeFileSync(join(service.app.config.data_dir, 'journal'), 'a disk that takes nothing');
  const end = holdEnds();
  const { id, rest } = await begin(service.url, client.key);
  proxy.refuse(true);
  end();
  setTimeout(() => proxy.refuse(false), outage_ms);
  expect((await rest()).endsWith(done)).toBe(true);
  const close = () =>
    database.db.query(`select type, revenue from ledger_entries where ref = $1 and event = 'close'`, [id]);
  await vi.waitFor(async () => expect(await close()).toEqual([{ type: 'settle', revenue: 2_010_000n }]), {
    timeout: 120_000,
    interval: 50,
  });
  const records = () => database.db.query('select cost from chat_calls where id = $1', [id]);
  await vi.waitFor(async () => expect(await records()).toEqual([{ cost: 2_010_000n }]), { timeout: 120_000 });
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});

test('a stream whose reserved hold the database refused pays what its key still may, although its end came while the database was away', async () => {
  const { database, proxy, upstream, holdEnds } = await setPlace();
  const service = await startTestApp({ worker: false, yaml: yamlOf(upstream), env: { DATABASE_URL: proxy.url } });
  onTestFinished(() => service.stop());
  const client = await service.client({ limit: '50.00' });
  await (await begin(service.url, client.key)).rest(); // from here on its money is known
  const { account_id } = client;
  const [{ key_id } = { key_id: '' }] = await database.db.query<{ key_id: string }>('select key_id from budgets');
  for (const ref of ['first', 'second']) {
    // From here on its money is leased, and holds are reserved in memory.
    await service.app.holds.hold({ account_id, key_id, ref, amount: 1n, model: 'acme/oai', kind: 'chat' });
    await service.app.holds.settle({ account_id, ref, cost: null });
  }
  const [{ spent } = { spent: 0n }] = await database.db.query<{ spent: bigint }>('select spent from budgets');
  await database.db.query('update budgets set limit_month = $1', [spent + 1_000n]); // less than the hold, and no node hears of it
  const end = holdEnds();
  const { id, rest } = await begin(service.url, client.key);
  await service.app.holds.flush(client.account_id); // else its hold is written 250 ms behind its begin
  expect(await database.db.query('select ref from open_holds')).toEqual([]);
  proxy.refuse(true);
  end();
  setTimeout(() => proxy.refuse(false), outage_ms);
  expect((await rest()).endsWith(done)).toBe(true);
  const charges = () =>
    database.db.query(`select revenue + loss as charged from ledger_entries where ref = $1 and event = 'close'`, [id]);
  await vi.waitFor(async () => expect(await charges()).toEqual([{ charged: 1_000n }]), {
    timeout: 120_000,
    interval: 50,
  });
  const records = () => database.db.query('select cost from chat_calls where id = $1', [id]);
  await vi.waitFor(async () => expect(await records()).toEqual([{ cost: 1_000n }]), { timeout: 120_000 });
  const report = await checkBooks(openPlain(database), { full: true, more: service_rules });
  expect(report).toMatchObject({ ok: true, open_holds: 0, findings: [] });
});
