import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { service_rules } from '../../src/chat/books.ts';
import { checkBooks } from '../../src/money/books.ts';
import { marginsOf } from '../../src/money/margins.ts';
import { NotStarted, type RunState } from '../../src/providers/provider.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { rescueTasks } from '../../src/tasks/sweep.ts';
import type { TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';
import { makePuppet } from '../helpers/puppet.ts';

const yaml = `
version: 1
currencies: { USD: "1", EUR: "0.87" }
${limits()}
providers: { told: { adapter: once }, rows: { adapter: once } }
models:
  - id: test/told
    kind: image
    input_schema: &schema { type: object, properties: { size: { type: string, default: small } } }
    price: [{ unit: image, amount: "0.03" }]
    routes: [{ id: a, provider: told, upstream_model: a, timeout: { start: 60s, total: 2m } }]
  - id: test/rows
    kind: image
    input_schema: *schema
    price: [{ unit: image, amount: "0.03" }, { unit: megapixel, amount: "0.01" }]
    estimate: { image: 1, megapixel: 2 }
    routes:
      - id: a
        provider: rows
        upstream_model: a
        timeout: { start: 60s, total: 2m }
        on_ambiguous_submit: failover
        cost:
          - { unit: image, amount: "0.02", when: { size: large } }
          - { unit: image, amount: "0.01" }
          - { unit: megapixel, amount: "0.001", currency: EUR }
      - { id: b, provider: told, upstream_model: b, cost: [{ unit: image, amount: "0.005" }] }
`;

describe('the upstream cost of a task', () => {
  const clock = testClock();
  const once = makePuppet();
  let service: TestApp;
  let client: Client;
  let image: Buffer;

  beforeAll(async () => {
    const size = { width: 1000, height: 1000, channels: 3, background: '#c33' } as const;
    image = await sharp({ create: size }).png().toBuffer();
    clock.run('2031-05-10T12:00:00.000Z'); // margins are those of a month
    service = await startTestApp({ yaml, worker: false, adapters: { once: once.adapter }, clock });
  });
  afterAll(() => service.stop());
  beforeEach(async () => {
    client = await service.client({ currency: 'EUR' });
  });
  afterEach(async () => {
    await service.app.db.query('delete from route_health');
    await expectExactBooks(service.app);
  });

  const { signal } = new AbortController();
  const job = (ref: TaskRef) => ({ id: 'x', queue: 'x', data: ref, attempt: 0, signal });
  const done = (more: object = {}): RunState => ({ phase: 'done', files: [{ bytes: image }], ...more });
  const running: RunState = { phase: 'running', ref: 'r', poll_after_ms: 1_000 };

  async function create(model: string, input: object = {}): Promise<TaskRef> {
    const { json } = await client.call('POST', '/v1/generate', { model, input });
    return { account_id: client.account_id, task_id: json.id };
  }
  /** A task whose submits are answered so, one after the other. */
  async function run(model: string, answers: (RunState | Error)[], input: object = {}): Promise<TaskRef> {
    const ref = await create(model, input);
    const begun = startTask(service.app, job(ref));
    for (const answer of answers) {
      const call = await once.next('start');
      if (answer instanceof Error) call.fail(answer);
      else call.answer(answer);
    }
    await begun;
    return ref;
  }
  const booked = ({ task_id }: TaskRef) =>
    service.app.db.query(
      `select event, provider, route, upstream_basis as basis, upstream_cost as cost, upstream_base as base,
              base_currency as currency, upstream_unknown as unknown
         from ledger_entries where ref = $1 and upstream_basis is not null order by number`,
      [task_id],
    );
  const close = (provider: string, route: string, basis: string, cost: bigint, base: bigint) => ({
    event: 'close',
    provider,
    route,
    basis,
    cost,
    base,
    currency: 'USD',
    unknown: 0,
  });
  const open = (event: string, provider: string, route: string, basis = 'unknown') => ({
    ...close(provider, route, basis, 0n, 0n),
    event,
    base: null,
    currency: null,
    unknown: basis === 'unknown' ? 1 : -1,
  });

  it('is the reported amount in the base currency and in that of the account', async () => {
    const ref = await run('test/told', [done({ upstream_cost: { amount: '0.0375', currency: 'USD' } })]);
    expect(await booked(ref)).toEqual([close('told', 'test/told#a', 'told', 32_625n, 37_500n)]);
    const [attempt] = await service.app.db.query('select upstream_cost, upstream_amount from attempts');
    expect(attempt).toEqual({ upstream_cost: '0.0375 USD', upstream_amount: 32_625n });
  });

  it('is, without a report, by the cost rows of its route, the measured units and the input at the submit', async () => {
    const small = await run('test/rows', [done()]);
    expect(await booked(small)).toEqual([close('rows', 'test/rows#a', 'rows', 9_700n, 11_149n)]); // 0.01 $ + 0.001 €
    const large = await run('test/rows', [done()], { size: 'large' });
    expect(await booked(large)).toEqual([close('rows', 'test/rows#a', 'rows', 18_400n, 21_149n)]);
    const rows = await service.app.db.query('select upstream_cost from attempts where task_id = $1', [large.task_id]);
    expect(rows).toEqual([{ upstream_cost: '0.021149 USD' }]);
  });

  it.each([
    ['nonsense', { amount: 'free!\0', currency: 'USD' }],
    ['less than nothing', { amount: '-1', currency: 'USD' }],
    ['more than there is', { amount: '9'.repeat(18), currency: 'USD' }],
    ['a foreign currency', { amount: '1', currency: 'CNY' }],
  ])('is unknown and breaks no settlement when the report is %s', async (_what, upstream_cost) => {
    const ref = await run('test/told', [done({ upstream_cost })]);
    expect(await booked(ref)).toEqual([open('close', 'told', 'test/told#a')]);
    const { json } = await client.call('GET', `/v1/tasks/${ref.task_id}`);
    expect(json).toMatchObject({ status: 'succeeded', cost: { exact: '0.026100' } });
  });

  it('is what the upstream reports for a failed run, or unknown', async () => {
    const failed = { phase: 'failed', type: 'upstream_error', message: 'x' } as const;
    expect(await booked(await run('test/rows', [failed]))).toEqual([open('close', 'rows', 'test/rows#a')]);
    const failure = { ...failed, upstream_cost: { amount: '0.002', currency: 'EUR' } };
    expect(await booked(await run('test/rows', [failure]))).toEqual([
      close('rows', 'test/rows#a', 'told', 2_000n, 2_299n),
    ]);
  });

  it('is nothing for what was not started, and an ambiguous submit is counted beside the actual run', async () => {
    expect(await booked(await run('test/told', [new NotStarted('refused', 'no')]))).toEqual([]);
    const ref = await run('test/rows', [new Error('cut'), done()]);
    const row = close('told', 'test/rows#b', 'rows', 4_350n, 5_000n);
    expect(await booked(ref)).toEqual([open('upstream 1', 'rows', 'test/rows#a'), row]);
    expect(await booked(await run('test/told', [new Error('cut')]))).toEqual([open('close', 'told', 'test/told#a')]);
  });

  it('is unknown for an abandoned run until the upstream confirms that it stopped', async () => {
    for (const answer of ['billed', 'stopped'] as const) {
      const ref = await run('test/told', [running]);
      await service.app.db.query('update tasks set deadline_at = $2 where id = $1', [ref.task_id, new Date(0)]);
      await rescueTasks(service.app);
      const stopped = pollTask(service.app, job(ref));
      (await once.next('cancel')).answer(answer);
      await stopped;
      const unknown = open('close', 'told', 'test/told#a');
      const taken_back = open('upstream 1 stopped', 'told', 'test/told#a', 'stopped');
      expect(await booked(ref)).toEqual(answer === 'billed' ? [unknown] : [unknown, taken_back]);
    }
  });

  it('is nothing for a run that was stopped for taking too long, if the upstream says so', async () => {
    const ref = await run('test/told', [running]);
    clock.pass(130_000);
    const late = pollTask(service.app, job(ref));
    (await once.next('poll')).answer(running);
    (await once.next('cancel')).answer('stopped');
    await late;
    expect(await booked(ref)).toEqual([close('told', 'test/told#a', 'free', 0n, 0n)]);
  });

  it('is invisible to callers', async () => {
    await run('test/rows', [new Error('cut'), done({ upstream_cost: { amount: '0.0375', currency: 'USD' } })]);
    const { json, text } = await client.call('GET', '/v1/balance/transactions');
    expect(json.data.map(({ type }) => type)).toEqual(['charge', 'hold', 'topup']);
    expect(text).not.toMatch(/0\.0375|32625|upstream|test\/rows#/);
  });

  it('is checked by the books to the millionth between attempts and ledger', async () => {
    const { task_id } = await run('test/rows', [done()]);
    const change = (by: number) =>
      service.app.db.query('update attempts set upstream_amount = upstream_amount + $2 where task_id = $1', [
        task_id,
        by,
      ]);
    await change(1);
    expect(await checkBooks(service.app.db, { full: true, more: service_rules })).toMatchObject({
      ok: false,
      difference: '0.000001',
      findings: [{ rule: 'what upstreams charge for a task is what the ledger has' }],
    });
    await change(-1);
  });

  it('reduces the margins, which add up by every name', async () => {
    const month = `${new Date(clock.now()).toISOString().slice(0, 7)}-01`;
    await run('test/rows', [new Error('cut'), done()]);
    for (const by of ['model', 'route', 'provider', 'account', 'day'] as const) {
      const rows = await marginsOf(service.app.db, month, by);
      const sum = (pick: (row: (typeof rows)[number]) => bigint) => rows.reduce((total, row) => total + pick(row), 0n);
      const [ledger] = await service.app.db.query(
        `select sum(revenue + loss)::bigint as revenue, sum(upstream_cost)::bigint as cost, sum(upstream_unknown)::bigint as unknown
           from ledger_entries`,
      );
      expect({
        revenue: sum((r) => r.revenue),
        cost: sum((r) => r.upstream_cost),
        unknown: sum((r) => r.unknown),
      }).toEqual(ledger);
      for (const row of rows) expect(row.margin).toBe(row.revenue - row.upstream_cost);
    }
    const of_account = await marginsOf(service.app.db, month, 'account');
    expect(of_account.find(({ name }) => name === client.account_id)).toEqual({
      name: client.account_id,
      currency: 'EUR',
      runs: 1n,
      revenue: 34_800n,
      upstream_cost: 4_350n,
      margin: 30_450n,
      base: [{ currency: 'USD', cost: 5_000n }],
      unknown: 1n,
    });
  });
});
