import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { awaitRecord, findRecord } from '../../src/chat/record.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { signal } from '../queue/engine.ts';
import { hello, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream, done, messagesStream } from './streams.ts';

/** Records of calls: which fact is in which column, and that each is there once. */

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await expectExactBooks(stage.test.app);
});
afterAll(() => stage.stop());

/** Answers the id of the call, the record of which is written then. */
async function call(model = 'acme/oai'): Promise<string> {
  const { headers } = await stage.client.call('POST', '/v1/chat/completions', { model, stream: true, messages: hello });
  const id = headers.get('x-request-id') ?? '';
  await stage.client.call('GET', `/v1/chat/${id}`);
  return id;
}

async function rowOf(id: string): Promise<Record<string, unknown>> {
  const rows = await stage.test.app.db.query('select * from chat_calls where id = $1', [id]);
  expect(rows).toHaveLength(1);
  return rows[0] ?? {};
}

test('each value of a record is in the column of its name', async () => {
  const usage = {
    prompt_tokens: 1_000,
    completion_tokens: 70,
    prompt_tokens_details: { cached_tokens: 200 },
    completion_tokens_details: { reasoning_tokens: 30 },
  };
  const usage_chunk = chunk({}, { usage }).replace(/"choices":\[.*\],"usage"/, '"choices":[],"usage"');
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), chunk({}, {}, 'length'), usage_chunk, done] });
  const before = Date.now();
  const id = await call();
  const after = Date.now();
  const { account_id, key_id } = stage.client;
  const { created_at, first_content_ms, total_ms, ...row } = await rowOf(id);
  expect(row).toEqual({
    account_id,
    id,
    key_id,
    model: 'acme/oai',
    style: 'completions',
    stream: true,
    status: 200,
    error_type: null,
    error_message: null,
    finish: 'length',
    attempts: [
      {
        route: 'acme/oai#oai',
        outcome: 'answered',
        upstream_id: 'chatcmpl-1',
        why: 'default',
        duration_ms: expect.any(Number),
      },
    ],
    input_tokens: 800,
    cached_input_tokens: 200,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: 70,
    reasoning_tokens: 30,
    counted_here: false,
    tools: null,
    end_user: null,
    metadata: null,
    cost: 2_340n,
    upstream_cost: null,
    currency: 'USD',
    price_id: expect.stringMatching(/^[\w-]{22}$/),
    recorded_at: null,
  });
  const created_ms = created_at instanceof Date ? created_at.getTime() : NaN;
  expect(created_ms).toBeGreaterThan(before - 5_000);
  expect(created_ms).toBeLessThan(after + 5_000);
  expect(first_content_ms).toBeGreaterThanOrEqual(0);
  expect(total_ms).toBeGreaterThanOrEqual(Number(first_content_ms));
});

test('the record of a call without a response has an error, and no finish reason and no time of first content', async () => {
  for (const name of ['first', 'second']) stage.upstream.script(name, { status: 500, json: {} });
  expect(await rowOf(await call('acme/two'))).toMatchObject({
    status: 502,
    error_type: 'upstream_error',
    error_message: expect.stringMatching(/\.$/),
    finish: null,
    first_content_ms: null,
    attempts: [{ outcome: 'failed' }, { outcome: 'failed' }],
    cost: 0n,
  });
});

test('the record of a call that a fallback answered names the model that failed', async () => {
  stage.upstream.script('gpt-x', { status: 500, json: {} });
  stage.upstream.script('first', { status: 500, json: {} });
  stage.upstream.script('second', { stream: messagesStream(['Hi']) });
  const body = { models: ['acme/oai', 'acme/two'], stream: true, messages: hello };
  const { headers } = await stage.client.call('POST', '/v1/chat/completions', body);
  const id = headers.get('x-request-id') ?? '';
  const { json } = await stage.client.call('GET', `/v1/chat/${id}`);
  expect(json).toMatchObject({ model: 'acme/two', status: 200, error_message: null });
  const attempts = z.object({ attempts: z.array(z.object({ model: z.string().optional(), outcome: z.string() })) });
  expect(attempts.parse(json).attempts).toEqual([
    { model: 'acme/oai', outcome: 'failed' },
    { outcome: 'failed' },
    { outcome: 'answered' },
  ]);
});

test.each(['', ' ', 'NULL', '"', '\\', '\\"', '","', ')","(', '{a,(b)}', 'ein\nzwei\ttrzy ć 🙂', '$1 $& %s', "it's"])(
  "an upstream's text is stored unchanged: %j",
  async (finish) => {
    stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), chunk({}, {}, finish), done] });
    expect((await rowOf(await call())).finish).toBe(finish === '' ? null : finish); // an empty reason is none
  },
);

test('records whose write succeeded but whose confirmation was lost are stored once and log no error', async () => {
  const { db, log } = stage.test.app;
  const query = db.query.bind(db);
  let lost = 0;
  vi.spyOn(db, 'query').mockImplementation(async (text: string, values?: readonly unknown[]) => {
    const rows = await query(text, values);
    if (!text.includes('into chat_calls') || lost > 0) return rows;
    lost += 1;
    throw new Error('Connection terminated unexpectedly');
  });
  const complained = vi.spyOn(log, 'error');
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const ids = await Promise.all(Array.from({ length: 8 }, () => call()));
  for (const id of ids) expect(await rowOf(id)).toMatchObject({ status: 200, cost: 70n });
  expect(lost).toBe(1);
  expect(complained).not.toHaveBeenCalled();
});

test('the record of a call that has just ended at another node is waited for', async () => {
  const { app } = stage.test;
  const elsewhere = { db: { ...app.db }, clock: app.clock }; // it knows nothing of records that this node writes
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const [locked, over] = [signal(), signal()];
  const locking = app.db.tx(async (tx) => {
    await tx.query('lock table chat_calls in share row exclusive mode');
    locked.resolve();
    await over.promise;
  });
  await locked.promise;
  const { account_id, call: send } = stage.client;
  const body = { model: 'acme/oai', stream: true, messages: hello };
  const id = (await send('POST', '/v1/chat/completions', body)).headers.get('x-request-id') ?? '';
  const everything = () => Promise.resolve(true);
  const waiting = awaitRecord(elsewhere, { account_id, id, sees: everything }, new AbortController().signal);
  const gone = awaitRecord(elsewhere, { account_id, id, sees: everything }, AbortSignal.abort());
  expect(await findRecord(elsewhere.db, account_id, id)).toBeUndefined();
  expect(await gone).toBeUndefined();
  over.resolve();
  await locking;
  expect(await waiting).toMatchObject({ id, model: 'acme/oai' });
});

test('the record of a call that its upstream refused does not have the words of the upstream, which quote the input', async () => {
  const secret = 'marigold-7';
  const message = `Invalid value: '${secret}'`;
  const refusals = [
    { error: { type: 'invalid_request_error', message } },
    { error: { type: 'invalid_request_error', code: 'content_policy_violation', message } },
    { error: { type: 'invalid_request_error', code: 'context_length_exceeded', message } },
  ];
  for (const json of refusals) {
    stage.upstream.script('gpt-x', { status: 400, json });
    const answer = await stage.client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello });
    expect([answer.status, JSON.stringify(answer.json)]).toEqual([400, expect.stringContaining(secret)]);
    const id = answer.headers.get('x-request-id') ?? '';
    const { json: record } = await stage.client.call('GET', `/v1/chat/${id}`);
    expect(record).toMatchObject({ status: 400, error_message: expect.stringMatching(/\.$/) });
    expect(
      JSON.stringify(await rowOf(id), (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)),
    ).not.toContain(secret);
  }
});
