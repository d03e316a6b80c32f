import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { credit, setLimit } from '../../src/money/ledger.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { completion, hello, setStage, type Stage } from './setup.ts';
import { chunk, done } from './streams.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const ask = async (client: Client) =>
  (await client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello })).status;

/** An account whose next hold is reserved in memory. */
async function knownClient(): Promise<Client> {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const client = await stage.test.client({ credit: '1.00' });
  expect(await ask(client)).toBe(200);
  return client;
}

/** Returns a function that waits until this node has heard from PostgreSQL that the money of the account, or its leases, changed. */
function hear(what: 'invalidate' | 'returnLeases', { account_id }: Client): () => Promise<void> {
  const heard = vi.spyOn(stage.test.app.holds, what);
  onTestFinished(() => heard.mockRestore());
  return () => expect.poll(() => heard.mock.calls.map(([of]) => of)).toContain(account_id);
}

test('the balance and its transactions show the hold of a running call at once', async () => {
  const client = await knownClient();
  const usage = chunk({}, { usage: { prompt_tokens: 10, completion_tokens: 5 } }, 'stop');
  const looked = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), looked.promise, usage, done] });
  const response = await fetch(`${stage.test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', stream: true, messages: hello }),
  });
  const held = (await client.call('GET', '/v1/balance')).json.held.exact;
  expect(Number(held)).toBeGreaterThan(0.01);
  const [newest] = (await client.call('GET', '/v1/balance/transactions')).json.data;
  expect(newest).toMatchObject({ type: 'hold', amount: { exact: held } });
  looked.resolve();
  expect(await response.text()).toContain('Hi');
  expect((await client.call('GET', '/v1/balance')).json).toMatchObject({ held: { exact: '0.000000' } });
});

test('money that an operator withdraws is not available to the next call', async () => {
  const client = await knownClient();
  const { app } = stage.test;
  const taken = {
    account_id: client.account_id,
    type: 'adjustment',
    amount: -999_000n,
    ref: 'x',
    reason: 'x',
  } as const;
  const heard = hear('invalidate', client);
  expect((await credit(app.db, taken, new Date(app.clock.now()))).outcome).toBe('booked');
  await heard();
  expect(await ask(client)).toBe(402);
});

test('a limit that an operator sets applies to the next call', async () => {
  const client = await knownClient();
  const [changed, recalled] = [hear('invalidate', client), hear('returnLeases', client)];
  expect(await setLimit(stage.test.app.db, client.key_id, 1_000n)).toBe(true);
  await changed();
  await recalled();
  expect(await ask(client)).toBe(403);
});

test('a call leaves the same transactions whether or not its hold was a reservation in memory', async () => {
  const client = await knownClient(); // the first one was not
  expect(await ask(client)).toBe(200);
  const { data } = (await client.call('GET', '/v1/balance/transactions')).json;
  const types = data.map(({ type }: { type: string }) => type);
  expect(types.slice(0, types.length - 1)).toEqual([...movements, ...movements]);
});

/** Of one call, newest first. */
const movements = ['charge', 'hold'];

test('with reservations switched off, the hold of a call is in the database before its upstream is asked, and the most that it may cost is kept free', async () => {
  const place = await setStage({ providers: 'money: { reservations: database }\n' });
  onTestFinished(() => place.stop());
  const holds = () => place.test.app.db.query<{ amount: bigint }>('select amount + exposed as amount from open_holds');
  const usage = chunk({}, { usage: { prompt_tokens: 10, completion_tokens: 5 } }, 'stop');
  const content = '~'.repeat(9_000); // nobody knows how few tokens these are
  const messages = [{ role: 'user', content }];
  for (let turn = 0; turn < 2; turn++) {
    const looked = Promise.withResolvers<void>();
    place.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), looked.promise, usage, done] });
    const response = await fetch(`${place.test.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${place.client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/oai', stream: true, max_tokens: 1, messages }),
    });
    const held = await holds();
    expect(held).toHaveLength(1);
    expect(held[0]?.amount).toBeGreaterThanOrEqual(9_000n * 2n); // each byte a token
    looked.resolve();
    expect(await response.text()).toContain('Hi');
    expect(await holds()).toEqual([]);
  }
  await expectExactBooks(place.test.app);
});
