import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findKey } from '../../src/accounts/keys.ts';
import type { UsageView } from '../../src/dashboard/views/usage.ts';
import { close, hold } from '../../src/money/holds.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let stranger: Someone;
let viewer: Someone;
let client: Client;
let second: Client;

const day_ms = 86_400_000;
const midnight_ms = Math.floor(Date.now() / day_ms) * day_ms;
const at = (back_days: number, hour = 0) => new Date(midnight_ms - back_days * day_ms + hour * 3_600_000);
const day = (back: number) => at(back).toISOString();

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
  viewer = await memberOf(test, owner, 'viewer');
  client = await test.client({ account_id: owner.account_id });
  second = await test.client({ account_id: owner.account_id });
  const charges: [Client, Date, string, string, bigint, Record<string, string>][] = [
    [client, at(1, 3), '=cmd', 'chat', 12_345n, { input_token: '1200', output_token: '45' }],
    [client, at(1, 4), 'm/image', 'image', 10_000n, { image: '1' }],
    [second, at(0, 0), 'm/image', 'image', 20_000n, { image: '2' }],
    [second, at(3, 9), 'm/video', 'video', 1n, { second: '4.125' }],
    [client, at(3, 9), 'm/video', 'video', 7_000n, { second: '0.875' }],
    [client, at(9, 9), 'm/image', 'image', 5_000n, { image: '1' }],
  ];
  for (const [i, [by, now, model, kind, cost, units]] of charges.entries()) {
    const { account_id, key_id } = by;
    const ref = `task_usage${i}`;
    await hold(test.app.db, { account_id, key_id, ref, amount: 30_000n, model, kind }, now);
    await close(test.app.db, { account_id, ref, cost, beyond_hold: false, units }, now);
  }
  await test.app.db.query('select add_up_usage($1, 8)', [owner.account_id]);
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function usage(query: string, who: Someone = owner): Promise<UsageView> {
  const { status, json } = await who.get(`${who.base}/usage${query}`);
  expect(status).toBe(200);
  return json as UsageView;
}

const file = async (path: string) => {
  const answer = await owner.get(`${owner.base}/usage/${path}`);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8']);
  return answer.text
    .replace(/^\uFEFF/, '')
    .trimEnd()
    .split('\r\n');
};

describe('the usage page', () => {
  it('has the numbers of the API to the millionth', async () => {
    const query = `?from=${day(6)}&to=${day(-1)}`;
    for (const [group, name] of [
      ['model', 'model'],
      ['key', 'key'],
      ['kind', 'modality'],
    ] as const) {
      const view = await usage(`${query}&group=${group}`);
      const { json } = await client.call('GET', `/v1/usage${query}&group_by=${name}`);
      const rows = json.data.map((row) => [row[name as 'model'], row.cost.exact, row.count, row.units]);
      expect(view.rows.map(({ id, cost, count, units }) => [id, cost.exact, count, units]).toSorted()).toEqual(
        rows.toSorted(),
      );
      expect(view.total.cost).toEqual(json.total);
      const days = await client.call('GET', `/v1/usage${query}&group_by=day`);
      const bars = view.bars.map(({ at: start, parts }) => [
        start.slice(0, 10),
        parts.reduce((sum, { count }) => sum + count, 0),
      ]);
      expect(bars).toEqual(days.json.data.map((row) => [row.day, row.count]));
    }
    expect((await usage(query)).total.cost.exact).toBe('0.049346');
  });

  it('compares with the range before, the most expensive first', async () => {
    const view = await usage(`?from=${day(6)}&to=${day(-1)}&group=model`);
    expect(view).toMatchObject({ step: 'day', before: { from: day(13), to: day(6) } });
    expect(view.rows.map(({ id }) => id)).toEqual(['m/image', '=cmd', 'm/video']);
    expect(view.rows[0]?.before).toMatchObject({ count: 1, cost: { exact: '0.005000' } });
    expect(view.rows[1]?.before).toBeNull();
    expect(view.total_before.cost.exact).toBe('0.005000');
    expect(view.total.units).toEqual({ image: '3', second: '5', input_token: '1200', output_token: '45' });
  });

  it('tells keys of one name apart, as before and after a rotation', async () => {
    const keys = await Promise.all([client, second].map(({ key_id }) => findKey(test.app.db, key_id)));
    expect(keys.map((key) => key?.name)).toEqual(['Test', 'Test']);
    const names = keys.map((key) => `Test (…${key?.last_four})`);
    const both = await usage(`?from=${day(6)}&to=${day(-1)}&group=key`);
    expect(both.rows.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    const one = await usage(`?from=${day(6)}&to=${day(-1)}&group=key&key=${client.key_id}`);
    expect(one.rows.map(({ name }) => name)).toEqual(['Test']);
  });

  it('is by hours for up to two days, and of one model, key or kind', async () => {
    const view = await usage(`?from=${day(1)}&to=${day(-1)}&group=kind&key=${client.key_id}`);
    expect(view.step).toBe('hour');
    expect(view.bars.map(({ at: start }) => start)).toEqual([at(1, 3).toISOString(), at(1, 4).toISOString()]);
    expect((await usage(`?from=${day(6)}&to=${day(-1)}&model=m/video`)).total.count).toBe(2);
    expect((await usage(`?from=${day(6)}&to=${day(-1)}&kind=chat`)).total.count).toBe(1);
    expect((await usage('?model=unknown')).rows).toEqual([]);
  });

  it.each([
    '?from=yesterday',
    '?group=member',
    `?from=${day(0)}&to=${day(1)}`,
    `?from=${day(401)}&to=${day(0)}`,
    '?x=1',
  ])('refuses %s', async (query) => {
    for (const path of ['usage', 'usage/table.csv', 'usage/charges.csv']) {
      expect((await owner.get(`${owner.base}/${path}${query}`)).status).toBe(400);
    }
  });

  it('is visible to a viewer and to nobody outside', async () => {
    expect((await usage('', viewer)).total).toEqual((await usage('')).total);
    expect((await usage('', stranger)).total.count).toBe(0);
    for (const path of ['usage', 'usage/table.csv', 'usage/charges.csv']) {
      const foreign = await stranger.get(`${owner.base}/${path}`);
      const unknown = await stranger.get(`/dash/accounts/acct_00000000000000000000000000/${path}`);
      expect([foreign.status, unknown.status]).toEqual([404, 404]);
      const messageOf = ({ json }: typeof foreign) => (json as { error: { message: string } }).error.message;
      expect(messageOf(foreign)).toBe(messageOf(unknown));
      expect(
        (await fetch(test.url + owner.base + `/${path}`, { headers: { authorization: `Bearer ${client.key}` } }))
          .status,
      ).toBe(401);
    }
  });
});

describe('the usage files', () => {
  it('have the table with its total', async () => {
    const lines = await file(`table.csv?from=${day(6)}&to=${day(-1)}&group=model`);
    expect(lines).toEqual([
      'model,charges,cost,currency,image,second,input_token,output_token,cost_before',
      'm/image,2,0.030000,USD,3,,,,0.005000',
      "'=cmd,1,0.012345,USD,,,1200,45,0.000000",
      'm/video,2,0.007001,USD,,5,,,0.000000',
      'total,5,0.049346,USD,3,5,1200,45,0.005000',
    ]);
  });

  it('have every charge, oldest first, with the same sum', async () => {
    const [header = '', ...lines] = await file(`charges.csv?from=${day(6)}&to=${day(-1)}`);
    const names = header.split(',');
    const rows = lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [names[i] ?? '', cell])));
    expect(rows.map(({ reference }) => reference)).toEqual([
      'task_usage3',
      'task_usage4',
      'task_usage0',
      'task_usage1',
      'task_usage2',
    ]);
    expect(rows[0]).toMatchObject({
      time: at(3, 9).toISOString(),
      key: second.key_id,
      key_name: 'Test',
      cost: '0.000001',
      currency: 'USD',
      second: '4.125',
    });
    const sum = rows.reduce((total, { cost = '' }) => total + BigInt(cost.replace('.', '')), 0n);
    expect(sum).toBe(49_346n);
    expect(await file(`charges.csv?from=${day(6)}&to=${day(-1)}&kind=image`)).toHaveLength(3);
  });

  it('are named by their range', async () => {
    const answer = await owner.get(`${owner.base}/usage/charges.csv?from=2026-11-01&to=2026-12-01`);
    expect(answer.headers.get('content-disposition')).toBe(
      'attachment; filename="medley-charges-2026-11-01-2026-11-30.csv"',
    );
  });
});
