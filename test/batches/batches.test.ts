import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { callerOfKey } from '../../src/accounts/authenticate.ts';
import { deleteKey } from '../../src/accounts/keys.ts';
import { beginCalls, claimBatch, findBatch, insertBatch, removeOldBatches } from '../../src/batches/batches.ts';
import { bookAnswered, callLine } from '../../src/batches/call.ts';
import { insertLines, takeLine } from '../../src/batches/lines.ts';
import { findFile } from '../../src/files/files.ts';
import { atFailpoint } from '../../src/lib/failpoint.ts';
import { newId } from '../../src/lib/ids.ts';
import { databaseHolds, makeHoldBatcher, type Holds } from '../../src/money/holds.ts';
import { completion, setStage, type Stage } from '../chat/setup.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';

/** Batches as OpenAI's SDKs make them, with real workers. */

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
beforeEach(async () => {
  await stage.test.app.db.query('delete from route_health');
  stage.upstream.script('gpt-x', { json: completion('Hi') });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** Time in which a call would have begun. */
const watched_ms = 1_000;

/** Cost of an answer of the upstream: 10 tokens in, 5 out. */
const answer_cost = 70n;

const sdkOf = ({ key }: Client) => new OpenAI7({ apiKey: key, baseURL: `${stage.test.url}/v1`, maxRetries: 0 });

type Sent = { custom_id: string; body: object; url?: string; method?: string };

const chat = (custom_id: string, words = 'Hello', model = 'acme/oai'): Sent => ({
  custom_id,
  body: { model, messages: [{ role: 'user', content: words }] },
});

const endpoint = '/v1/chat/completions';
const text = (lines: readonly object[], url: string = endpoint) =>
  lines.map((line) => JSON.stringify({ method: 'POST', url, ...line })).join('\n');

async function upload(client: Client, content: string): Promise<string> {
  const file = new File([content], 'calls.jsonl');
  return (await sdkOf(client).files.create({ file, purpose: 'batch' })).id;
}

type Endpoint = Parameters<OpenAI7['batches']['create']>[0]['endpoint'];

async function create(client: Client, content: string, url: Endpoint = endpoint) {
  const input_file_id = await upload(client, content);
  return sdkOf(client).batches.create({ input_file_id, endpoint: url, completion_window: '24h' });
}

async function ended(client: Client, batch_id: string) {
  const isOver = async () => (await sdkOf(client).batches.retrieve(batch_id)).status;
  await expect.poll(isOver, { timeout: 120_000, interval: 100 }).toMatch(/^(?:completed|failed|expired|cancelled)$/);
  return sdkOf(client).batches.retrieve(batch_id);
}

type OutputLine = {
  id: string;
  custom_id: string;
  response: { status_code: number; request_id: string; body: { error?: { code?: string; message: string } } } | null;
  error: { code: string; message: string } | null;
};

async function linesOf(client: Client, file_id: string | null | undefined): Promise<OutputLine[]> {
  if (!file_id) return [];
  const content = await (await sdkOf(client).files.content(file_id)).text();
  expect(content.endsWith('\n')).toBe(true);
  return content
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as OutputLine);
}

/** The number of the account's charges, and their sum. */
async function chargesOf({ account_id }: Client): Promise<{ count: number; sum: bigint }> {
  const rows = await stage.test.app.db.query<{ count: number; sum: bigint }>(
    `select count(*)::int as count, coalesce(sum(revenue), 0)::bigint as sum from ledger_entries
      where account_id = $1 and type = 'settle'`,
    [account_id],
  );
  return rows[0] ?? { count: -1, sum: -1n };
}

describe.each([
  ['openai 6', OpenAI6],
  ['openai 7', OpenAI7],
] as const)('the SDK %s', (_name, OpenAI) => {
  it('creates a batch and reads its answers', async () => {
    const client = await stage.test.client();
    const sdk = new OpenAI({ apiKey: client.key, baseURL: `${stage.test.url}/v1`, maxRetries: 0 });
    const input_file_id = await upload(
      client,
      `${text([chat('b'), chat('a', 'Grüße'), chat('c', 'x', 'acme/none'), chat('d')])}\n\n`,
    );
    const batch = await sdk.batches.create({
      input_file_id,
      endpoint,
      completion_window: '24h',
      metadata: { job: 'nightly' },
    });
    expect(batch).toMatchObject({
      id: expect.stringMatching(/^batch_[0-9a-z]{26}$/),
      object: 'batch',
      endpoint,
      input_file_id,
      completion_window: '24h',
      expires_at: batch.created_at + 86_400,
      metadata: { job: 'nightly' },
    });
    const done = await ended(client, batch.id);
    expect(done).toMatchObject({ status: 'completed', request_counts: { total: 4, completed: 3, failed: 1 } });
    expect(done.completed_at).toBeGreaterThanOrEqual(batch.created_at);
    const answers = await linesOf(client, done.output_file_id);
    expect(answers.map(({ custom_id }) => custom_id)).toEqual(['b', 'a', 'd']);
    for (const { response, error } of answers) {
      expect(error).toBeNull();
      expect(response?.status_code).toBe(200);
      expect(response?.body).toMatchObject({
        object: 'chat.completion',
        model: 'acme/oai',
        usage: { total_tokens: 15 },
      });
      const call = () => client.call('GET', `/v1/chat/${response?.request_id}`);
      await expect.poll(async () => (await call()).json.cost).toMatchObject({ exact: '0.000070' });
    }
    const [failed] = await linesOf(client, done.error_file_id);
    expect(failed).toMatchObject({ custom_id: 'c', error: null, response: { status_code: 404 } });
    expect(failed?.response?.body.error?.code).toBe('model_not_found');
    await expect.poll(() => chargesOf(client)).toEqual({ count: 3, sum: 3n * answer_cost });
    const output = await sdk.files.retrieve(done.output_file_id ?? '');
    expect(output).toMatchObject({ purpose: 'batch_output', filename: `${batch.id}_output.jsonl` });
    const rows = await stage.test.app.db.query('select number from batch_lines where account_id = $1', [
      client.account_id,
    ]);
    expect(rows).toEqual([]);
  });

  it('lists batches in pages, each account its own', async () => {
    const client = await stage.test.client();
    const sdk = new OpenAI({ apiKey: client.key, baseURL: `${stage.test.url}/v1`, maxRetries: 0 });
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c']) ids.unshift((await create(client, text([chat(name)]))).id);
    const listed: string[] = [];
    for await (const { id } of sdk.batches.list({ limit: 2 })) listed.push(id);
    expect(listed).toEqual(ids);
    for (const id of ids) await ended(client, id);
    const other = sdkOf(await stage.test.client());
    expect((await other.batches.list()).data).toEqual([]);
    for (const call of [() => other.batches.retrieve(ids[0] ?? ''), () => other.batches.cancel(ids[0] ?? '')])
      await expect(call()).rejects.toMatchObject({ status: 404 });
  });
});

it.each<[Endpoint, object, string]>([
  ['/v1/responses', { model: 'sandbox/chat', input: 'Hello' }, 'response'],
  ['/v1/completions', { model: 'sandbox/chat', prompt: 'Hello' }, 'text_completion'],
  ['/v1/embeddings', { model: 'sandbox/embedding', input: ['a', 'b'] }, 'list'],
  ['/v1/moderations', { model: 'sandbox/moderation', input: 'a red bicycle' }, ''],
])('calls of %s are made too', async (url, body, object) => {
  const client = await stage.test.client();
  const { id } = await create(client, text([{ custom_id: 'one', body }], url), url);
  const done = await ended(client, id);
  const [line] = await linesOf(client, done.output_file_id);
  expect(line?.response).toMatchObject({ status_code: 200, body: object === '' ? { results: [{}] } : { object } });
});

describe('an input file', () => {
  const good = JSON.stringify({ method: 'POST', url: endpoint, ...chat('a') });
  const line = (change: object) => JSON.stringify({ method: 'POST', url: endpoint, ...chat('b'), ...change });
  it.each<[string, string, object[]]>([
    ['no JSON', `${good}\n{`, [{ code: 'invalid_json_line', line: 2, param: null }]],
    ['a list', `[]\n${good}`, [{ code: 'invalid_json_line', line: 1 }]],
    ['no custom_id', line({ custom_id: undefined }), [{ code: 'invalid_custom_id', param: 'custom_id' }]],
    ['a long custom_id', line({ custom_id: 'a'.repeat(513) }), [{ code: 'invalid_custom_id' }]],
    ['NUL in a custom_id', line({ custom_id: '\0' }), [{ code: 'invalid_custom_id' }]],
    ['a custom_id twice', `${good}\n\n${good}`, [{ code: 'duplicate_custom_id', line: 3 }]],
    ['another method', line({ method: 'GET' }), [{ code: 'invalid_method', param: 'method' }]],
    ['another url', line({ url: '/v1/embeddings' }), [{ code: 'invalid_url', param: 'url' }]],
    ['no body', line({ body: [] }), [{ code: 'invalid_request', param: 'body' }]],
    ['no model', line({ body: {} }), [{ code: 'invalid_request', param: 'body.model' }]],
    ['a stream', line({ body: { model: 'a', stream: true } }), [{ param: 'body.stream' }]],
    ['a call in the background', line({ body: { model: 'a', background: true } }), [{ param: 'body.background' }]],
    ['blank lines alone', '\n \n', [{ code: 'empty_file', line: null }]],
    ['two mistakes', `{\n${line({ method: 'PUT' })}`, [{ line: 1 }, { line: 2 }]],
  ])('with %s fails its batch, and nothing is called', async (_, content, errors) => {
    const client = await stage.test.client();
    const { id } = await create(client, content);
    const done = await ended(client, id);
    expect(done).toMatchObject({ status: 'failed', errors: { object: 'list', data: errors }, output_file_id: null });
    expect(done.errors?.data).toHaveLength(errors.length);
    expect(done.failed_at).toEqual(expect.any(Number));
    expect(await chargesOf(client)).toEqual({ count: 0, sum: 0n });
  });

  it('with more lines than a batch may have fails it', async () => {
    const client = await stage.test.client();
    const many = Array.from({ length: 50_001 }, (_, index) =>
      JSON.stringify({ custom_id: String(index), method: 'POST', url: endpoint, body: { model: 'a' } }),
    );
    const done = await ended(client, (await create(client, many.join('\n'))).id);
    expect(done).toMatchObject({ status: 'failed', errors: { data: [{ code: 'too_many_lines' }] } });
  });
});

it.each<[object, string]>([
  [{ input_file_id: undefined }, 'input_file_id'],
  [{ input_file_id: 'file_x' }, 'input_file_id'],
  [{ input_file_id: newId('file') }, 'input_file_id'],
  [{ endpoint: '/v1/generate' }, 'endpoint'],
  [{ endpoint: 7 }, 'endpoint'],
  [{ completion_window: '1h' }, 'completion_window'],
  [{ metadata: { a: 1 } }, 'metadata'],
  [{ output_expires_after: { anchor: 'now', seconds: 3600 } }, 'output_expires_after.anchor'],
  [{ output_expires_after: { anchor: 'created_at', seconds: 1 } }, 'output_expires_after.seconds'],
])('a batch with %j is refused', async (change, param) => {
  const client = await stage.test.client();
  const input_file_id = await upload(client, text([chat('a')]));
  const fields = { input_file_id, endpoint, completion_window: '24h', ...change };
  const { status, json } = await client.call('POST', '/v1/batches', fields);
  expect([status, json.error.param]).toEqual([400, param]);
});

it('large answers are all in the file, in the order of many lines', async () => {
  const client = await stage.test.client();
  const words = 'x'.repeat(3_000_000);
  stage.upstream.script('gpt-x', ({ body }) => {
    const is_large = JSON.stringify(body).includes('large');
    return { json: completion(is_large ? words : 'Hi') };
  });
  const lines = Array.from({ length: 200 }, (_, index) => chat(`n${index}`, index % 50 === 7 ? 'large' : 'small'));
  const done = await ended(client, (await create(client, text(lines))).id);
  expect(done.request_counts).toEqual({ total: 200, completed: 200, failed: 0 });
  const answers = await linesOf(client, done.output_file_id);
  expect(answers.map(({ custom_id }) => custom_id)).toEqual(lines.map(({ custom_id }) => custom_id));
  expect(JSON.stringify(answers[57]?.response?.body).length).toBeGreaterThan(words.length);
  await expect.poll(async () => (await chargesOf(client)).count).toBe(200);
});

it('what is full is asked again, and charged once', async () => {
  const client = await stage.test.client();
  stage.upstream.script('gpt-x', {
    status: 429,
    json: { error: { message: 'slow down' } },
    headers: { 'retry-after': '3' },
  });
  const { id } = await create(client, text([chat('a'), chat('b')]));
  const attempts = () =>
    stage.test.app.db.query(
      "select 1 from batch_lines where account_id = $1 and state = 'waiting' and request_id is not null",
      [client.account_id],
    );
  await expect.poll(attempts).toHaveLength(2);
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  await stage.test.app.db.query('delete from route_health');
  const done = await ended(client, id);
  expect(done.request_counts).toEqual({ total: 2, completed: 2, failed: 0 });
  await expect.poll(() => chargesOf(client)).toEqual({ count: 2, sum: 2n * answer_cost });
});

/** Keeps everybody from the money of an account until the function that it returns is called. */
async function lockBalance({ account_id }: Client): Promise<() => Promise<void>> {
  const { promise: locked, resolve } = Promise.withResolvers<void>();
  let is_over = false;
  const locking = stage.test.app.db.tx(async (tx) => {
    await tx.query('select from balances where account_id = $1 for update', [account_id]);
    resolve();
    while (!is_over) await tx.query('select pg_sleep(0.05)'); // a transaction that does nothing is ended
  });
  await Promise.race([locked, locking]);
  return () => {
    is_over = true;
    return locking;
  };
}

it('an answer whose end is only journaled keeps its charge until that is booked, once, and is in the file', async () => {
  const client = await stage.test.client();
  const { db } = stage.test.app;
  const { promise: after, resolve: answer } = Promise.withResolvers<void>();
  const asked_before = stage.upstream.requests.length;
  stage.upstream.script('gpt-x', { json: completion('Hi'), after });
  const { id } = await create(client, text([chat('a')]));
  await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 1);
  const look = async () => {
    const rows = await db.query<{ claim: string; state: string | null; has_charge: boolean }>(
      `select b.claim, l.state, l.charge is not null as has_charge
         from batches b left join batch_lines l on l.account_id = b.account_id and l.batch_id = b.id where b.id = $1`,
      [id],
    );
    return rows[0];
  };
  const nextTurn = async () => {
    const before = await look();
    const hasBegun = async () => {
      const now = await look();
      return now?.state === null || now?.claim !== before?.claim;
    };
    await expect.poll(hasBegun, { timeout: 120_000 }).toBe(true);
  };
  const unlock = await lockBalance(client);
  try {
    answer();
    await nextTurn();
    expect(await look()).toMatchObject({ state: 'answered', has_charge: true });
    expect((await sdkOf(client).batches.cancel(id)).status).toBe('cancelling'); // which ends it behind the turn
    await nextTurn();
    expect(await look()).toMatchObject({ state: 'answered', has_charge: true });
  } finally {
    await unlock();
  }
  const done = await ended(client, id);
  expect(done).toMatchObject({ status: 'cancelled', request_counts: { total: 1, completed: 1, failed: 0 } });
  expect(await linesOf(client, done.output_file_id)).toHaveLength(1);
  await expect.poll(() => chargesOf(client)).toEqual({ count: 1, sum: answer_cost });
});

it('an account without money gets its lines back as 402, and pays nothing', async () => {
  const client = await stage.test.client({ credit: '0' });
  const { id } = await create(client, text([chat('a'), chat('b')]));
  const done = await ended(client, id);
  expect(done).toMatchObject({ status: 'completed', request_counts: { failed: 2 }, output_file_id: null });
  const lines = await linesOf(client, done.error_file_id);
  expect(lines.map(({ response }) => response?.status_code)).toEqual([402, 402]);
});

it('a refused call is counted by the worker that ends its line, and not by one that has lost it', async () => {
  const client = await stage.test.client({ credit: '0' });
  const content = text([chat('a')]);
  const { id } = await create(client, content);
  await ended(client, id);
  const { app } = stage.test;
  const { account_id } = client;
  const batch = await findBatch(app.db, { account_id, id });
  const caller = batch && (await callerOfKey(app.db, account_id, batch.key_id));
  const file = batch && (await findFile(app.db, { account_id, id: batch.input_file_id }, new Date()));
  if (!batch || !caller || !file) throw new Error('the batch is gone');
  const noted: string[] = [];
  const refusals = { note: (_: object, { reason }: { reason: string }) => void noted.push(reason) };
  const run = { batch, claim: 'lost', caller, file, signal: new AbortController().signal };
  const place = { number: 1, custom_id: 'a', start_bytes: 0n, size_bytes: Buffer.byteLength(content) };
  await callLine({ ...app, refusals }, run, { account_id, id, ...place, attempts: 1, request_id: 'req_a' });
  expect(noted).toEqual([]);
  const total = async () => (await client.call('GET', '/v1/usage/refusals')).json.total;
  await expect.poll(total, { interval: 100 }).toBe(1);
});

/** Lets a node die that has stored the answer of a batch's only call, and not booked it. Returns the batch. */
async function dieAnswered(client: Client, holds: Holds) {
  const { app } = stage.test;
  const { db } = app;
  const { account_id, key_id } = client;
  const content = text([chat('a')]);
  const now = new Date();
  const of_batch = { account_id, id: newId('batch'), key_id, endpoint, input_file_id: await upload(client, content) };
  const expires_at = new Date(now.getTime() + 86_400_000);
  await insertBatch(db, { ...of_batch, metadata: {}, keep_s: 3_600, created_at: now, expires_at }, 1);
  const claim = 'dead';
  const batch = await claimBatch(db, of_batch, claim);
  const place = { number: 1, custom_id: 'a', start_bytes: 0, size_bytes: Buffer.byteLength(content) };
  await insertLines(db, of_batch, claim, [place], now);
  await beginCalls(db, of_batch, claim, 1, now);
  const line = await takeLine(db, of_batch, { claim, request_id: newId('req'), now });
  const caller = await callerOfKey(db, account_id, key_id);
  const file = await findFile(db, { account_id, id: of_batch.input_file_id }, now);
  if (!batch || !line || !caller || !file) throw new Error('the batch is gone');
  const answered = Promise.withResolvers<void>();
  atFailpoint('batch.answered', () => {
    answered.resolve();
    return new Promise(() => {}); // nothing comes of this node any more
  });
  const run = { batch, claim, caller, file, signal: new AbortController().signal };
  void callLine({ ...app, holds, begin: () => () => {} }, run, line);
  await answered.promise;
  atFailpoint('batch.answered');
  return batch;
}

it.each([
  { where: 'in the memory of its node alone', is_written: false, is_stored: true },
  { where: 'in PostgreSQL, too', is_written: true, is_stored: true },
  { where: 'in PostgreSQL alone, as a node of an earlier version leaves it', is_written: true, is_stored: false },
])('a stored answer whose node died is charged once if its hold was $where', async ({ is_written, is_stored }) => {
  const client = await stage.test.client();
  const { app } = stage.test;
  const in_database = databaseHolds(makeHoldBatcher(app.db, () => new Date()));
  const held = { outcome: 'held', available: 100_000_000n, remaining: null } as const;
  const in_memory = { ...in_database, hold: () => Promise.resolve(held) };
  const batch = await dieAnswered(client, is_written ? in_database : in_memory);
  expect(await chargesOf(client)).toEqual({ count: 0, sum: 0n });
  if (!is_stored) await app.db.query("update batch_lines set charge = charge - 'hold' where batch_id = $1", [batch.id]);
  const [line] = await app.db.query('select request_id, charge from batch_lines where batch_id = $1', [batch.id]);
  for (let times = 0; times < 2; times++) {
    await app.db.query("update batch_lines set state = 'answered', charge = $2 where batch_id = $1", [
      batch.id,
      line?.['charge'],
    ]);
    await bookAnswered(app, batch);
    expect(await chargesOf(client)).toEqual({ count: 1, sum: answer_cost });
  }
  const records = await app.db.query('select cost from chat_calls where id = $1', [line?.['request_id']]);
  expect(records).toEqual([{ cost: answer_cost }]);
});

describe('a batch that is cut short', () => {
  it('is cancelled: what was called is charged and answered, the rest is not called', async () => {
    const client = await stage.test.client();
    const { promise: after, resolve } = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', { json: completion('Hi'), after });
    const { id } = await create(client, text(Array.from({ length: 12 }, (_, index) => chat(String(index)))));
    await expect
      .poll(() =>
        stage.test.app.db.query("select 1 from batch_lines where account_id = $1 and state = 'sent'", [
          client.account_id,
        ]),
      )
      .toHaveLength(4);
    expect((await sdkOf(client).batches.cancel(id)).status).toBe('cancelling');
    resolve();
    const done = await ended(client, id);
    expect(done).toMatchObject({ status: 'cancelled', request_counts: { total: 12, completed: 4, failed: 8 } });
    expect(await linesOf(client, done.output_file_id)).toHaveLength(4);
    const rest = await linesOf(client, done.error_file_id);
    expect(new Set(rest.map(({ error }) => error?.code))).toEqual(new Set(['batch_cancelled']));
    expect(rest).toHaveLength(8);
    await expect.poll(() => chargesOf(client)).toEqual({ count: 4, sum: 4n * answer_cost });
    await expect(sdkOf(client).batches.cancel(id)).rejects.toMatchObject({ status: 400, code: 'batch_ended' });
  });

  it('expires after a day', async () => {
    const client = await stage.test.client();
    stage.upstream.script('gpt-x', { status: 503, json: {} });
    const { id } = await create(client, text([chat('a'), chat('b')]));
    await expect.poll(async () => (await sdkOf(client).batches.retrieve(id)).status).toBe('in_progress');
    const { db, engine } = stage.test.app;
    await db.query("update batches set expires_at = now() - interval '1 s' where id = $1", [id]);
    await engine.promote('batch.run', [id]);
    const done = await ended(client, id);
    expect(done.status).toBe('expired');
    const lines = await linesOf(client, done.error_file_id);
    expect(lines.map(({ error }) => error?.code)).toEqual(['batch_expired', 'batch_expired']);
    expect(await chargesOf(client)).toEqual({ count: 0, sum: 0n });
  });

  it('ends with its key, and without its input file', async () => {
    const client = await stage.test.client();
    const reader = await stage.test.client({ account_id: client.account_id });
    stage.upstream.script('gpt-x', { status: 503, json: {} });
    const [one, two] = [await create(client, text([chat('a')])), await create(reader, text([chat('a')]))];
    for (const { id } of [one, two])
      await expect.poll(async () => (await sdkOf(reader).batches.retrieve(id)).status).toBe('in_progress');
    await deleteKey(stage.test.app.db, client.key_id, new Date());
    await sdkOf(reader).files.delete(two.input_file_id);
    const codes: (string | undefined)[] = [];
    for (const { id } of [one, two]) {
      await stage.test.app.db.query('update batch_lines set not_before = now() where batch_id = $1', [id]);
      await stage.test.app.engine.promote('batch.run', [id]);
      const done = await ended(reader, id);
      codes.push(...(await linesOf(reader, done.error_file_id)).map(({ error }) => error?.code));
    }
    expect(codes).toEqual(['api_key_ended', 'input_file_gone']);
  });

  it.each<[string, (client: Client) => Promise<unknown>, (string | null | undefined)[]]>([
    [
      'its key is deleted',
      ({ key_id }) => deleteKey(stage.test.app.db, key_id, new Date()),
      ['api_key_ended', undefined],
    ],
    [
      'its account is blocked',
      ({ account_id }) => stage.test.app.db.query("update accounts set status = 'blocked' where id = $1", [account_id]),
      [undefined, 'account_blocked'],
    ],
  ])('begins no call a second after %s while others are made, which are charged', async (_, end, codes) => {
    const client = await stage.test.client();
    const reader = await stage.test.client({ account_id: client.account_id });
    const asked_before = stage.upstream.requests.length;
    const { promise: after, resolve } = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', { json: completion('Hi'), after });
    const { id } = await create(client, text(Array.from({ length: 6 }, (_line, index) => chat(String(index)))));
    await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 4);
    await end(client);
    await new Promise((over) => setTimeout(over, watched_ms)); // what nobody looks at again is still as it was
    resolve();
    const done = await ended(reader, id);
    expect(done.request_counts).toEqual({ total: 6, completed: 4, failed: 2 });
    const rest = await linesOf(reader, done.error_file_id);
    expect(rest.map(({ response, error }) => [error?.code, response?.body.error?.code])).toEqual([codes, codes]);
    expect(stage.upstream.requests).toHaveLength(asked_before + 4);
    await expect.poll(() => chargesOf(client)).toEqual({ count: 4, sum: 4n * answer_cost });
  });

  it('answers the same for calls whose input file is deleted while others are made', async () => {
    const client = await stage.test.client();
    const asked_before = stage.upstream.requests.length;
    const { promise: after, resolve } = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', { json: completion('Hi'), after });
    const batch = await create(client, text(Array.from({ length: 6 }, (_, index) => chat(String(index)))));
    await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 4);
    await sdkOf(client).files.delete(batch.input_file_id);
    resolve();
    const done = await ended(client, batch.id);
    const rest = await linesOf(client, done.error_file_id);
    expect(rest.map(({ response, error }) => [response, error?.code])).toEqual([
      [null, 'input_file_gone'],
      [null, 'input_file_gone'],
    ]);
    await expect.poll(() => chargesOf(client)).toEqual({ count: 4, sum: 4n * answer_cost });
  });
});

it('an account has twenty batches at most that have not ended, and old ones are removed', async () => {
  const client = await stage.test.client();
  const other = await stage.test.client();
  stage.upstream.script('gpt-x', { status: 503, json: {} });
  const input_file_id = await upload(client, text([chat('a')]));
  const make = () => client.call('POST', '/v1/batches', { input_file_id, endpoint, completion_window: '24h' });
  const answers = await Promise.all(Array.from({ length: 25 }, make));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(answers.find(({ status }) => status === 429)?.json.error.code).toBe('batches_limit');
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  await stage.test.app.db.query('delete from route_health');
  const { id } = await create(other, text([chat('a')])); // beside them
  expect((await ended(other, id)).status).toBe('completed');
  await stage.test.app.db.query('update batch_lines set not_before = now()');
  for (const { json, status } of answers) if (status === 200) await ended(client, json.id);
  await expect.poll(() => chargesOf(client)).toEqual({ count: 20, sum: 20n * answer_cost });
  await removeOldBatches(stage.test.app.db, new Date(Date.now() + 60_000));
  expect((await sdkOf(client).batches.list()).data).toEqual([]);
});

it('a batch leaves half of the calls that its key may have at once to others', async () => {
  const client = await stage.test.client();
  const { limits } = stage.test.app;
  const { chat_at_once } = stage.test.app.catalog.current.settings.limits;
  const permits = Array.from({ length: Math.floor(chat_at_once / 2) }, () =>
    limits.chat_calls.tryAcquire(client.key_id),
  );
  const { id } = await create(client, text([chat('a')]));
  await expect.poll(async () => (await sdkOf(client).batches.retrieve(id)).status).toBe('in_progress');
  await new Promise((resolve) => setTimeout(resolve, watched_ms));
  expect((await sdkOf(client).batches.retrieve(id)).request_counts?.completed).toBe(0);
  for (const permit of permits) permit?.release();
  expect((await ended(client, id)).request_counts?.completed).toBe(1);
});
