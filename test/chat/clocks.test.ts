import { expect, onTestFinished, test, vi } from 'vitest';
import { recordText } from '../../src/db/record.ts';
import { releaseForgotten } from '../../src/chat/sweep.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { hello, setStage, type Stage } from './setup.ts';
import { chunk, done } from './streams.ts';

const minute_ms = 60_000;
const usage = chunk({}, { usage: { prompt_tokens: 1_000, completion_tokens: 70 } }, 'stop');
/** 1,000 × 2 and 70 × 10, by the million. */
const cost = 2_700n;

const clockOf = (ahead_min: number) => ({ now: () => Date.now() + ahead_min * minute_ms });

type Streaming = { stage: Stage; finish: () => Promise<string>; id: string };

/** A service whose clock is off, and a stream of it that has begun and whose hold is written. */
async function startStream(ahead_min: number): Promise<Streaming> {
  const stage = await setStage({ worker: false, clock: clockOf(ahead_min) });
  onTestFinished(() => stage.stop());
  const looked = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), looked.promise, usage, done] });
  const response = await fetch(`${stage.test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', stream: true, messages: hello }),
  });
  const { app } = stage.test;
  await app.holds.flush(stage.client.account_id);
  // The node says that it is alive beside its start.
  await expect.poll(() => app.db.query('select id from nodes where id = $1', [app.node_id])).toHaveLength(1);
  expect(await app.db.query('select ref from open_holds')).toHaveLength(1);
  const finish = () => {
    looked.resolve();
    return response.text();
  };
  return { stage, id: response.headers.get('x-request-id') ?? '', finish };
}

async function expectCharged({ stage, id }: Streaming): Promise<void> {
  const { db } = stage.test.app;
  const record = () => db.query('select cost from chat_calls where id = $1', [id]);
  await expect.poll(record).toEqual([{ cost }]);
  expect(await db.query('select amount - held as available from balances')).toEqual([
    { available: 100_000_000n - cost },
  ]);
  expect(await db.query('select spent, held from budgets')).toEqual([{ spent: cost, held: 0n }]);
  await expectExactBooks(stage.test.app);
}

test.each([
  { served: 0, swept: 20 },
  { served: 0, swept: -20 },
  { served: -20, swept: 0 },
  { served: 20, swept: 0 },
  { served: -20, swept: 20 },
])(
  'a sweep releases no hold of a live stream and the stream is charged in full: served with a clock of $served min, swept with $swept min',
  async ({ served, swept }) => {
    const streaming = await startStream(served);
    const { app } = streaming.stage.test;
    expect(await releaseForgotten({ ...app, clock: clockOf(swept) })).toBe(0);
    // Also long after its time by the database's clock: its node is alive.
    await app.db.query(`update open_holds set expires_at = now() - interval '20 minutes'`);
    expect(await releaseForgotten(app)).toBe(0);
    expect((await streaming.finish()).endsWith(done)).toBe(true);
    await expectCharged(streaming);
  },
);

test('a hold that cannot be released keeps the sweep from no other hold', async () => {
  const stage = await setStage({ worker: false });
  onTestFinished(() => stage.stop());
  const { app } = stage.test;
  const other = await stage.test.client();
  const left = { ref: 'req_left', amount: 1000, model: 'acme/oai', kind: 'chat', expires_in_ms: -7_200_000 };
  for (const { account_id, key_id } of [stage.client, other]) {
    await app.db.query('select hold_money(now(), now(), $1, null)', [recordText({ account_id, key_id, ...left })]);
  }
  const settle = app.holds.settle.bind(app.holds);
  vi.spyOn(app.holds, 'settle').mockImplementation((request) =>
    request.account_id === stage.client.account_id ? Promise.reject(new Error('locked')) : settle(request),
  );
  await expect(releaseForgotten(app)).rejects.toThrow('holds of chat calls could not be released');
  expect(await app.db.query('select account_id from open_holds')).toEqual([{ account_id: stage.client.account_id }]);
  vi.restoreAllMocks();
  expect(await releaseForgotten(app)).toBe(1);
  expect(await app.db.query('select ref from open_holds')).toEqual([]);
  await expectExactBooks(app);
});

test('a stream is charged from the available balance when its node was believed dead and its hold was released', async () => {
  const streaming = await startStream(0);
  const { app } = streaming.stage.test;
  await app.db.query('update open_holds set node_id = $1', ['a process that is gone']);
  expect(await releaseForgotten(app, new Date(Date.now() + 20 * minute_ms))).toBe(1);
  expect(await app.db.query('select held from balances')).toEqual([{ held: 0n }]);
  await streaming.finish();
  await expectCharged(streaming);
  const entries = await app.db.query(`select type, event from ledger_entries where ref = $1 order by number`, [
    streaming.id,
  ]);
  expect(entries).toEqual([
    { type: 'hold', event: 'hold' },
    { type: 'release', event: 'close' },
    { type: 'settle', event: 'late' },
  ]);
});
