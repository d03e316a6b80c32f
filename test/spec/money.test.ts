import { pino } from 'pino';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { credit } from '../../src/money/ledger.ts';
import { finish } from '../../src/tasks/finish.ts';
import { expectExactBooks, startTestApp, type Answered, type Body, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { bytesAdapter } from '../helpers/bytes-adapter.ts';
import { testClock } from '../helpers/clock.ts';

/** The money decisions: exact amounts, their views, frozen prices, months, and the endpoints that tell of money. */

const yaml = (price: string, zloty = '3.65') => `
version: 1
currencies: { USD: "1", PLN: "${zloty}" }
${limits({ failed_per_24h: 25 })}
providers: { bytes: { adapter: bytes } }
models:
  - id: test/image
    kind: image
    input_schema: &schema
      type: object
      properties:
        prompt: { type: string, default: x }
        n: { type: integer, minimum: 1, maximum: 4, default: 1 }
        width: { type: integer, default: 16 }
        height: { type: integer, default: 16 }
        kind: { enum: [cheap, tiny, half, below, mite, usual], default: usual }
    price:
      - { unit: image, amount: "0.001234", when: { kind: cheap } }
      - { unit: image, amount: "0.0000014", when: { kind: tiny } }
      - { unit: image, amount: "0.015", when: { kind: half } }
      - { unit: image, amount: "0.014999", when: { kind: below } }
      - { unit: image, amount: "0.000001", when: { kind: mite } }
      - { unit: image, amount: "${price}" }
    estimate: { image: $input.n }
    routes:
      - provider: sandbox
        upstream_model: image
        input: { prompt: $input.prompt, n: $input.n, width: $input.width, height: $input.height }
  - id: test/mixed
    kind: image
    input_schema: *schema
    price: [{ unit: image, amount: "0.01" }, { unit: megapixel, amount: "1" }]
    estimate: { image: 2, megapixel: 1 }
    routes: [{ provider: bytes }]
  - id: test/melody
    kind: audio
    input_schema: { type: object, properties: { duration: { type: number } } }
    price: [{ unit: second, amount: "0.01" }]
    estimate: { second: 2 }
    routes: [{ provider: sandbox, upstream_model: audio, input: { prompt: x, duration: $input.duration } }]
`;
const usual = yaml('0.02');

const clock = testClock();
/** Lines of the service's log. */
const messages: string[] = [];
let service: TestApp; // with a worker
let idle: TestApp; // without one, for holds that stay open
let client: Client;
let quiet: Client;

beforeAll(async () => {
  const files = await Promise.all([1010, 1030].map((width) => imageOf(width)));
  const adapters = { bytes: bytesAdapter(files) };
  const log = pino({ level: 'error' }, { write: (line: string) => void messages.push(line) });
  service = await startTestApp({ yaml: usual, adapters, log });
  idle = await startTestApp({ yaml: usual, adapters, clock, worker: false });
});
afterAll(async () => {
  await service.stop();
  await idle.stop();
});
beforeEach(async () => {
  clock.run(Date.now());
  client = await service.client();
  quiet = await idle.client();
});
afterEach(async () => {
  await expectExactBooks(service.app);
  await expectExactBooks(idle.app);
});

function imageOf(width: number): Promise<Buffer> {
  const shape = { width, height: 1000, channels: 3, background: '#36c' } as const;
  return sharp({ create: shape }).png().toBuffer();
}

async function generate(input: object, model = 'test/image', by = client): Promise<Body> {
  return (await by.call('POST', '/v1/generate?wait=120', { model, input })).json;
}

const hold = async (input: object, by = quiet): Promise<Answered> =>
  by.call('POST', '/v1/generate', { model: 'test/image', input });

/** Ends a task of the idle service, as its worker would with one image. */
async function succeed(id: string, by = quiet, image = '1'): Promise<void> {
  const ref = { account_id: by.account_id, task_id: id };
  await finish(idle.app, ref, { status: 'succeeded', files: [], units: { image } });
}

/** Creates and ends a task. */
async function charge(input: object, by = quiet): Promise<string> {
  const { id } = (await hold(input, by)).json;
  await succeed(id, by);
  return id;
}

const balanceOf = async (by: Client): Promise<Body> => (await by.call('GET', '/v1/balance')).json;
const movementsOf = async (by: Client, query = '?limit=100'): Promise<Body[]> =>
  (await by.call('GET', `/v1/balance/transactions${query}`)).json.data;
const usageOf = async (by: Client, query: string): Promise<Body> => (await by.call('GET', `/v1/usage${query}`)).json;
const millionths = (exact: string): bigint => BigInt(exact.replace('.', ''));
const refusal = (param: string) => ({ status: 400, json: { error: { type: 'invalid_request', param } } });

it('D-money-1 amounts are millionths of the currency unit, so an image may cost less than a cent', async () => {
  const task = await generate({ kind: 'cheap' });
  expect([task.cost.exact, task.estimated_cost.exact]).toEqual(['0.001234', '0.001234']);
  expect((await balanceOf(client)).balance.exact).toBe('99.998766');
});

it('D-money-2 units × price × rate is one exact fraction that is rounded once', async () => {
  const task = await generate({ kind: 'tiny', n: 4 }); // 0.0000056: each picture by itself would be 1 or 2 millionths
  expect([task.estimated_cost.exact, task.cost.exact]).toEqual(['0.000006', '0.000006']);
  const zloty = await service.client({ currency: 'PLN' });
  const in_zloty = await generate({ kind: 'tiny', n: 3 }, 'test/image', zloty); // 0.00001533
  expect([in_zloty.estimated_cost.exact, in_zloty.cost.exact]).toEqual(['0.000016', '0.000015']);
});

it('D-money-3 a charge is rounded half up', async () => {
  expect((await generate({ kind: 'tiny', n: 3 })).cost.exact).toBe('0.000004'); // 0.0000042
  expect((await generate({ kind: 'tiny', n: 4 })).cost.exact).toBe('0.000006'); // 0.0000056
});

it('D-money-4 a hold is rounded up', async () => {
  expect((await hold({ kind: 'tiny', n: 3 })).json.estimated_cost.exact).toBe('0.000005'); // 0.0000042
  expect((await balanceOf(quiet)).held.exact).toBe('0.000005');
});

it('D-money-5 the amount of a cost has two digits, rounded half up', async () => {
  expect((await generate({ kind: 'half' })).cost).toMatchObject({ amount: '0.02', exact: '0.015000' });
  expect((await generate({ kind: 'below' })).cost).toMatchObject({ amount: '0.01', exact: '0.014999' });
});

it('D-money-6 a positive cost never shows 0.00', async () => {
  expect((await generate({ kind: 'mite' })).cost).toMatchObject({ amount: '0.01', exact: '0.000001' });
});

it('D-money-7 an estimate is shown rounded up', async () => {
  const { json } = await hold({ kind: 'below' });
  expect(json.estimated_cost).toMatchObject({ amount: '0.02', exact: '0.014999' });
});

it('D-money-8 balance, available and remaining are shown rounded down', async () => {
  const limited = await idle.client({ credit: '1.019999', limit: '0.509999' });
  await hold({ kind: 'mite' }, limited);
  expect(await balanceOf(limited)).toMatchObject({
    balance: { amount: '1.01', exact: '1.019999' },
    held: { amount: '0.00', exact: '0.000001' },
    available: { amount: '1.01', exact: '1.019998' },
    key: { remaining: { amount: '0.50', exact: '0.509998' } },
  });
});

it('D-money-9 exact is the amount in the ledger, with six digits', async () => {
  const { id, cost } = await generate({ kind: 'cheap' });
  expect(cost.exact).toMatch(/^\d+\.\d{6}$/);
  const [entry] = await service.app.db.query<{ revenue: bigint }>(
    `select revenue from ledger_entries where ref = $1 and type = 'settle'`,
    [id],
  );
  expect(entry?.revenue).toBe(millionths(cost.exact));
});

it('D-money-10 sums are made of exact values only', async () => {
  for (let i = 0; i < 3; i++) await charge({ kind: 'cheap' });
  const usage = await usageOf(quiet, '?group_by=model');
  const exact = { amount: '0.00', exact: '0.003702' };
  expect([usage.data[0]?.cost, usage.total]).toMatchObject([
    { ...exact, amount: '0.01' },
    { ...exact, amount: '0.01' },
  ]);
  const second = await idle.client({ account_id: quiet.account_id });
  for (let i = 0; i < 3; i++) await charge({ kind: 'cheap' }, second);
  expect((await usageOf(quiet, '?group_by=key')).total).toMatchObject({ amount: '0.01', exact: '0.007404' });
});

it('D-money-11 the price of a task is frozen at its creation', async () => {
  const { json: created } = await client.call('POST', '/v1/generate', {
    model: 'test/image',
    input: { prompt: '[[delay 500ms]] x' },
  });
  await service.configure(yaml('0.01'));
  const { json: later } = await hold({}, client);
  await expect
    .poll(async () => (await taskOf(created.id)).status, { interval: 20, timeout: 120_000 })
    .toBe('succeeded');
  await service.configure(usual);
  expect((await taskOf(created.id)).cost.exact).toBe('0.020000');
  expect(later.estimated_cost.exact).toBe('0.010000');
});

const taskOf = async (id: string, by = client): Promise<Body> => (await by.call('GET', `/v1/tasks/${id}`)).json;

it('D-money-12 the exchange rate of a task is frozen at its creation', async () => {
  const zloty = await idle.client({ currency: 'PLN' });
  const { json: created } = await hold({}, zloty);
  await idle.configure(yaml('0.02', '2'));
  await succeed(created.id, zloty);
  await idle.configure(usual);
  expect((await taskOf(created.id, zloty)).cost.exact).toBe('0.073000');
});

it('D-money-13 units that are measured from a file are rounded to the millisecond', async () => {
  const { output, cost } = await generate({ duration: 1.23456 }, 'test/melody');
  const { data } = await usageOf(client, '?group_by=model');
  const measured = Number(data[0]?.units['second']);
  expect(data[0]?.units['second']).toBe('1.235');
  expect(Math.abs(measured - (output[0]?.duration ?? 0))).toBeLessThanOrEqual(0.0005);
  expect(cost.exact).toBe('0.012350');
});

it('D-money-14 units that are measured slightly above the held ones are charged as held', async () => {
  expect((await generate({ width: 1 }, 'test/mixed')).cost.exact).toBe('1.010000'); // 1.01 MP of 1, 1 image of 2
  expect((await generate({ width: 2 }, 'test/mixed')).cost.exact).toBe('1.020000'); // 1.03 MP, up to the hold
});

it('D-money-15 a task is never charged more than its hold', async () => {
  const task = await generate({ duration: 4 }, 'test/melody');
  expect(task.output[0]?.duration).toBeCloseTo(4, 1);
  expect([task.status, task.estimated_cost.exact, task.cost.exact]).toEqual(['succeeded', '0.020000', '0.020000']);
});

it('D-money-22 an output that costs more than its hold is booked as a loss and logged', async () => {
  const { id } = await generate({ duration: 3 }, 'test/melody');
  const rows = await service.app.db.query(
    `select revenue, loss from ledger_entries where ref = $1 and type = 'settle'`,
    [id],
  );
  expect(rows).toEqual([{ revenue: 30_000n, loss: -10_000n }]);
  const line = () => JSON.parse(messages.find((each) => each.includes(id)) ?? '{}');
  await expect.poll(line).toMatchObject({ level: 50, loss: '0.010000', currency: 'USD' });
});

it('D-money-16 an account pays in one of the configured currencies, which are USD and PLN by default', async () => {
  const zloty = await service.client({ currency: 'PLN', credit: '10' });
  const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
  const { json: task } = await zloty.call('POST', '/v1/generate?wait=120', order);
  expect(task.cost).toEqual({ amount: '0.04', currency: 'PLN', exact: '0.036500' });
  expect(await balanceOf(zloty)).toMatchObject({ currency: 'PLN', balance: { amount: '9.96', exact: '9.963500' } });
  const plain = await service.beside();
  expect([...plain.app.catalog.current.settings.currencies]).toEqual([
    ['USD', '1'],
    ['PLN', '3.65'],
  ]);
  await plain.stop();
});

it('D-money-17 prices are shown in the base currency to every account', async () => {
  const zloty = await service.client({ currency: 'PLN' });
  const { json } = await zloty.call('GET', '/v1/models/sandbox/image');
  expect(json.pricing).toMatchObject([{ unit: 'image', amount: '0.01', currency: 'USD' }]);
});

it('D-money-18 a charge belongs to the UTC month of its settlement', async () => {
  clock.stop('2031-01-31T23:59:59.999Z');
  const { json: task } = await hold({});
  clock.stop('2031-02-01T00:00:00.000Z');
  await succeed(task.id);
  expect((await balanceOf(quiet)).key.spent.exact).toBe('0.020000');
  expect((await usageOf(quiet, '?from=2031-01-01&to=2031-02-01')).total.exact).toBe('0.000000');
  expect((await usageOf(quiet, '?from=2031-02-01&to=2031-03-01')).total.exact).toBe('0.020000');
  clock.stop('2031-03-01T00:00:00.000Z');
  expect((await balanceOf(quiet)).key.spent.exact).toBe('0.000000');
});

it('D-money-19 open holds count in the current month', async () => {
  clock.stop('2031-01-31T23:59:59.999Z');
  const limited = await idle.client({ limit: '0.05' });
  expect((await hold({ n: 2 }, limited)).status).toBe(202);
  clock.stop('2031-02-01T00:00:00.000Z');
  expect((await balanceOf(limited)).key.remaining?.exact).toBe('0.010000');
  expect((await hold({}, limited)).status).toBe(403);
});

it('D-money-20 money functions take the time as a parameter', async () => {
  clock.stop('2031-07-01T10:20:30.400Z');
  await charge({});
  const times = (await movementsOf(quiet)).slice(0, 2).map((entry) => entry.created_at);
  expect(times).toEqual(['2031-07-01T10:20:30.400Z', '2031-07-01T10:20:30.400Z']);
});

it('D-money-21 a unit without a price costs nothing, and config check warns about it', async () => {
  const file = yaml('0.02').replace('      - { unit: image, amount: "0.02" }\n', '');
  await idle.configure(file);
  const free = (await hold({ n: 4 })).json.estimated_cost;
  const priced = (await hold({ n: 4, kind: 'cheap' })).json.estimated_cost;
  const { warnings } = idle.app.catalog.current;
  await idle.configure(usual);
  expect([free.exact, priced.exact]).toEqual(['0.000000', '0.004936']);
  expect(warnings.map(({ message }) => message)).toEqual([
    expect.stringContaining('inputs that fit no row for image are free'),
  ]);
});

it('D-ledger-1 every movement of the ledger is double entry and adds up to zero', async () => {
  await charge({ n: 3 });
  const copy = `insert into ledger_entries select (jsonb_populate_record(e, $2)).* from ledger_entries e
     where account_id = $1 and type = 'settle'`;
  const unbalanced = { number: 99, ref: 'x', revenue: 1 };
  await expect(idle.app.db.query(copy, [quiet.account_id, unbalanced])).rejects.toThrow(/check/);
  const [sum] = await idle.app.db.query<{ sum: string }>(
    'select sum(available + held + topup_source + revenue + loss + adjust)::text as sum from ledger_entries',
  );
  expect(sum?.sum).toBe('0');
});

it('D-ledger-2 entries of the ledger are never changed or deleted', async () => {
  await charge({});
  const where = `where account_id = '${quiet.account_id}'`;
  for (const change of ['update ledger_entries set reason = $$x$$', 'delete from ledger_entries']) {
    await expect(idle.app.db.query(`${change} ${where}`)).rejects.toThrow('never changed or deleted');
  }
  await expect(idle.app.db.query('truncate ledger_entries')).rejects.toThrow('never changed or deleted');
});

it('D-ledger-3 the balances of the system accounts are the sums of their entries', async () => {
  await charge({ n: 3 });
  const [sums] = await idle.app.db.query<Record<string, bigint>>(
    `select sum(topup_source)::bigint as topup_source, sum(revenue)::bigint as revenue,
            sum(available)::bigint as available, sum(held)::bigint as held
       from ledger_entries where account_id = $1`,
    [quiet.account_id],
  );
  expect(sums).toEqual({ topup_source: -100_000_000n, revenue: 20_000n, available: 99_980_000n, held: 0n });
});

it('D-ledger-4 every movement happens once, and settle and release share one key', async () => {
  const id = await charge({});
  const again = `insert into ledger_entries select (jsonb_populate_record(e, $2)).* from ledger_entries e
     where account_id = $1 and type = 'settle'`;
  await expect(idle.app.db.query(again, [quiet.account_id, { number: 99 }])).rejects.toThrow(/unique|duplicate/);
  const movement = { account_id: quiet.account_id, type: 'topup', amount: 5n, ref: 'bank 1', reason: 'x' } as const;
  const outcomes = [await credit(idle.app.db, movement, new Date()), await credit(idle.app.db, movement, new Date())];
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['booked', 'exists']);
  expect((await movementsOf(quiet)).filter((entry) => entry.reference_id === id)).toHaveLength(2);
});

it('D-balance-1 GET /v1/balance returns balance, held, available, currency, key and updated_at', async () => {
  const balance = await balanceOf(quiet);
  expect(balance).toEqual({
    object: 'balance',
    balance: { amount: '100.00', currency: 'USD', exact: '100.000000' },
    held: { amount: '0.00', currency: 'USD', exact: '0.000000' },
    available: { amount: '100.00', currency: 'USD', exact: '100.000000' },
    currency: 'USD',
    key: { spend_limit: null, spent: expect.any(Object), remaining: null, resets_at: expect.any(String) },
    updated_at: expect.stringMatching(/Z$/),
  });
});

it('D-balance-2 available is balance minus held', async () => {
  await hold({ n: 3 });
  await charge({});
  expect(await balanceOf(quiet)).toMatchObject({
    balance: { exact: '99.980000' },
    held: { exact: '0.060000' },
    available: { exact: '99.920000' },
  });
});

it('D-balance-3 GET /v1/balance shows the limit of the calling key, what it spent, what remains and when it resets', async () => {
  clock.stop('2031-12-31T23:00:00Z');
  const limited = await idle.client({ limit: '1' });
  await charge({}, limited);
  await hold({ n: 2 }, limited);
  expect((await balanceOf(limited)).key).toEqual({
    spend_limit: { amount: '1.00', currency: 'USD', exact: '1.000000' },
    spent: { amount: '0.02', currency: 'USD', exact: '0.020000' },
    remaining: { amount: '0.94', currency: 'USD', exact: '0.940000' },
    resets_at: '2032-01-01T00:00:00.000Z',
  });
});

it('D-transactions-1 GET /v1/balance/transactions lists the ledger by cursor, newest first', async () => {
  for (let i = 0; i < 3; i++) await charge({});
  const ids = (await movementsOf(quiet)).map(({ id }) => id);
  expect(ids).toHaveLength(7);
  const page = async (query: string) => (await movementsOf(quiet, query)).map(({ id }) => id);
  expect(await page(`?limit=2&after=${ids[1]}`)).toEqual(ids.slice(2, 4));
  expect(await page(`?limit=2&before=${ids[4]}`)).toEqual(ids.slice(2, 4));
  const { json } = await quiet.call('GET', '/v1/balance/transactions?limit=3');
  expect([json.has_more, json.first_id, json.last_id]).toEqual([true, ids[0], ids[2]]);
  expect(await quiet.call('GET', '/v1/balance/transactions?after=x')).toMatchObject(refusal('after'));
});

it('D-transactions-2 a transaction has direction, type, amount, available_after, held_after and a reference', async () => {
  const id = await charge({ n: 3 });
  const [charged, held, topup] = await movementsOf(quiet);
  expect([charged, held, topup]).toMatchObject([
    {
      type: 'charge',
      direction: 'out',
      amount: { exact: '0.020000' },
      reference_id: id,
      held_after: { exact: '0.000000' },
    },
    {
      type: 'hold',
      direction: 'none',
      amount: { exact: '0.060000' },
      reference_id: id,
      held_after: { exact: '0.060000' },
    },
    { type: 'topup', direction: 'in', amount: { exact: '100.000000' }, held_after: { exact: '0.000000' } },
  ]);
  const available = [charged, held, topup].map((entry) => entry?.available_after.exact);
  expect(available).toEqual(['99.980000', '99.940000', '100.000000']);
});

it('D-transactions-3 the types of transactions are topup, hold, release, charge and adjustment', async () => {
  await charge({});
  const { id } = (await hold({})).json;
  await quiet.call('POST', `/v1/tasks/${id}/cancel`);
  const correction = { account_id: quiet.account_id, type: 'adjustment', amount: -7n, ref: 'a', reason: 'x' } as const;
  await credit(idle.app.db, correction, new Date());
  const types = (await movementsOf(quiet)).map(({ type }) => type);
  expect(types).toEqual(['adjustment', 'release', 'hold', 'charge', 'hold', 'topup']);
  for (const type of new Set(types)) {
    const only = await movementsOf(quiet, `?type=${type}`);
    expect(new Set(only.map((entry) => entry.type))).toEqual(new Set([type]));
  }
  expect(await quiet.call('GET', '/v1/balance/transactions?type=settle')).toMatchObject(refusal('type'));
});

it('D-transactions-4 the transactions add up to the balance', async () => {
  await charge({ n: 4 });
  await charge({ kind: 'cheap', n: 2 });
  await hold({ n: 2 });
  await quiet.call('POST', `/v1/tasks/${(await hold({})).json.id}/cancel`);
  const sign = { in: 1n, out: -1n, none: 0n };
  const movements = await movementsOf(quiet);
  const sum = movements.reduce((so_far, { amount, direction }) => {
    if (direction !== 'in' && direction !== 'out' && direction !== 'none') throw new Error(direction);
    return so_far + sign[direction] * millionths(amount.exact);
  }, 0n);
  const balance = await balanceOf(quiet);
  expect(sum).toBe(millionths(balance.balance.exact));
  expect(movements[0]?.available_after).toEqual(balance.available);
  expect(movements[0]?.held_after).toEqual(balance.held);
});

it('D-usage-1 GET /v1/usage groups by day in UTC', async () => {
  clock.stop('2031-03-30T23:59:59.999Z');
  await charge({});
  clock.stop('2031-03-31T00:00:00.000Z');
  await charge({});
  await charge({});
  const usage = await usageOf(quiet, '?group_by=day');
  expect(usage.data).toMatchObject([
    { day: '2031-03-30', count: 1, cost: { exact: '0.020000' } },
    { day: '2031-03-31', count: 2, cost: { exact: '0.040000' }, units: { image: '2' } },
  ]);
  expect((await usageOf(quiet, '')).data).toEqual(usage.data);
});

it('D-usage-2 GET /v1/usage groups by model, by key, by modality, and by several of them', async () => {
  const second = await idle.client({ account_id: quiet.account_id });
  await charge({});
  await charge({ kind: 'cheap' }, second);
  const { id } = (await quiet.call('POST', '/v1/generate', { model: 'test/melody', input: {} })).json;
  const ref = { account_id: quiet.account_id, task_id: id };
  await finish(idle.app, ref, { status: 'succeeded', files: [], units: { second: '1.5' } });
  const costs = async (group: 'model' | 'key' | 'modality') =>
    Object.fromEntries((await usageOf(quiet, `?group_by=${group}`)).data.map((row) => [row[group], row.cost.exact]));
  expect(await costs('model')).toEqual({ 'test/image': '0.021234', 'test/melody': '0.015000' });
  expect(await costs('key')).toEqual({ [quiet.key_id]: '0.035000', [second.key_id]: '0.001234' });
  expect(await costs('modality')).toEqual({ image: '0.021234', audio: '0.015000' });
  expect((await usageOf(quiet, '?group_by=modality,key')).data).toHaveLength(3);
  expect(await quiet.call('GET', '/v1/usage?group_by=color')).toMatchObject(refusal('group_by'));
});

it('D-usage-3 GET /v1/usage counts only the time between from and to', async () => {
  clock.stop('2031-04-10T12:00:00.000Z');
  await charge({});
  const count = async (from: string, to: string) =>
    (await usageOf(quiet, `?from=${from}&to=${to}`)).data.reduce((sum, row) => sum + row.count, 0);
  expect(await count('2031-04-10T12:00:00Z', '2031-04-11')).toBe(1);
  expect(await count('2031-04-10T12:00:00.001Z', '2031-04-11')).toBe(0);
  expect(await count('2031-04-01', '2031-04-10T12:00:00Z')).toBe(0);
  expect(await count('2031-04-01', '2031-04-10T12:00:00.001Z')).toBe(1);
});

const estimate = (by: Client, body: unknown): Promise<Answered> => by.call('POST', '/v1/estimate', body);

it('D-estimate-1 POST /v1/estimate takes the body of generate and returns estimated_cost, available and allowed', async () => {
  const body = { model: 'test/image', input: { n: 3 }, metadata: { a: '1' }, webhook_url: 'https://example.com' };
  expect(await estimate(quiet, body)).toMatchObject({ status: 200 });
  expect((await estimate(quiet, body)).json).toEqual({
    estimated_cost: { amount: '0.06', currency: 'USD', exact: '0.060000' },
    available: { amount: '100.00', currency: 'USD', exact: '100.000000' },
    allowed: true,
  });
  expect((await estimate(quiet, { model: 'no/such', input: {} })).status).toBe(404);
  expect((await estimate(quiet, { model: 'test/image', input: { n: 9 } })).status).toBe(422);
});

it('D-estimate-2 POST /v1/estimate creates no task and holds nothing', async () => {
  await estimate(quiet, { model: 'test/image', input: {} });
  expect((await balanceOf(quiet)).held.exact).toBe('0.000000');
  expect((await quiet.call('GET', '/v1/tasks')).json.data).toEqual([]);
});

it('D-estimate-3 allowed is false when generate would answer 402, 403 or 429', async () => {
  const body = { model: 'test/image', input: { n: 2 } };
  const poor = await idle.client({ credit: '0.03' });
  const limited = await idle.client({ limit: '0.03' });
  const paused = await idle.client();
  const tasks = await Promise.all(Array.from({ length: 25 }, () => hold({}, paused)));
  for (const { json } of tasks) {
    await finish(
      idle.app,
      { account_id: paused.account_id, task_id: json.id },
      { status: 'failed', type: 'upstream_error', message: 'x', counts: true, attempt: 'failed', reason: 'x' },
    );
  }
  for (const [by, status] of [[poor, 402] as const, [limited, 403] as const, [paused, 429] as const]) {
    expect((await estimate(by, body)).json.allowed).toBe(false);
    expect((await hold({ n: 2 }, by)).status).toBe(status);
  }
});

it('D-key-1 GET /v1/key returns the limits and the use of the calling key', async () => {
  clock.stop('2031-05-10T12:00:00.000Z');
  const limited = await idle.client({ limit: '0.5' });
  await charge({}, limited);
  await hold({}, limited);
  expect((await limited.call('GET', '/v1/key')).json).toEqual({
    object: 'api_key',
    id: limited.key_id,
    name: 'Test',
    account_id: limited.account_id,
    currency: 'USD',
    spend_limit: { amount: '0.50', currency: 'USD', exact: '0.500000' },
    spent: { amount: '0.02', currency: 'USD', exact: '0.020000' },
    held: { amount: '0.02', currency: 'USD', exact: '0.020000' },
    remaining: { amount: '0.46', currency: 'USD', exact: '0.460000' },
    resets_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
    limits: { generate_per_minute: 100_000, chat_per_minute: 600, failed_per_24h: 25 },
    expires_at: null,
    scopes: null,
    addresses: null,
    models: null,
    requests_per_minute: null,
  });
});
