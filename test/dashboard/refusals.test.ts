import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BudgetsView } from '../../src/dashboard/views/budgets.ts';
import type { RefusalsView } from '../../src/dashboard/views/refusals.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let client: Client;
let owner: Someone;

beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test, 'Own', 1_000_000n);
  client = await test.client({ account_id: owner.account_id });
});
afterAll(() => test.stop());

const audio = { model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } };

const viewOf = async (who: Someone, query = '') => okBody<RefusalsView>(await who.get(`${who.base}/refusals${query}`));

it('shows refusals by reason with the names of keys and budgets, by hour, and those of each budget', async () => {
  const limited = await test.client({ account_id: owner.account_id, limit: '0' });
  expect((await limited.call('POST', '/v1/generate', audio)).status).toBe(403);
  const body = { name: 'Night runs', scope: 'account', period: 'total', amount: '0.05', kind: 'hard' };
  const { id } = okBody<{ id: string }>(await owner.post(`${owner.base}/budgets`, body));
  for (const status of [202, 403, 403]) expect((await client.call('POST', '/v1/generate', audio)).status).toBe(status);
  await expect.poll(async () => (await viewOf(owner)).total).toBe(3);
  const view = await viewOf(owner);
  const key = { id: client.key_id, name: 'Test' };
  expect(view).toMatchObject({
    step: 'hour',
    reasons: [
      {
        reason: 'budget_reached',
        count: 2,
        parts: [{ key, budget: { id, name: 'Night runs' }, model: 'sandbox/audio', count: 2 }],
      },
      { reason: 'monthly_limit', count: 1, parts: [{ key: { id: limited.key_id }, budget: null, count: 1 }] },
    ],
  });
  const [first] = view.reasons;
  expect(view.bars.map(({ at }) => at)).toContain(new Date(first?.last_at ?? '').toISOString());
  expect(view.bars.flatMap(({ parts }) => parts).reduce((sum, { count }) => sum + count, 0)).toBe(3);
  expect((await viewOf(owner, `?key=${limited.key_id}`)).total).toBe(1);
  expect((await viewOf(owner, '?model=sandbox/image')).total).toBe(0);
  expect((await viewOf(owner, '?project=default')).total).toBe(3);
  const month = '?from=2026-01-01&to=2026-02-01';
  expect(await viewOf(owner, month)).toMatchObject({ step: 'day', total: 0, reasons: [], bars: [] });
  const { data } = okBody<BudgetsView>(await owner.get(`${owner.base}/budgets`));
  expect(data).toMatchObject([{ name: 'Night runs', refused: 2 }]);
});

it('is for members of every role, and for nobody else', async () => {
  const viewer = await memberOf(test, owner, 'viewer');
  expect((await viewer.get(`${owner.base}/refusals`)).status).toBe(200);
  const stranger = await ownerOfNew(test, 'Foreign');
  expect((await stranger.get(`${owner.base}/refusals`)).status).toBe(404);
  expect((await viewOf(stranger)).total).toBe(0);
  expect((await owner.get(`${owner.base}/refusals?key=%00`)).status).toBe(400);
});
