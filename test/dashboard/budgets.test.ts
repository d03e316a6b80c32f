import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BudgetsView, BudgetView } from '../../src/dashboard/views/budgets.ts';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { commandsBeside } from '../cli/medley.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let stranger: Someone;

beforeAll(async () => {
  test = await startTestApp();
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function viewOf(who: Someone): Promise<BudgetsView> {
  return okBody<BudgetsView>(await who.get(`${who.base}/budgets`));
}

async function budgetOf(who: Someone, id: string): Promise<BudgetView> {
  const budget = (await viewOf(who)).data.find((each) => each.id === id);
  if (!budget) throw new Error(`there is no budget ${id}`);
  return budget;
}

const create = async (body: object, who = owner) =>
  okBody<{ id: string }>(
    await who.post(`${who.base}/budgets`, { name: 'All', scope: 'account', period: 'month', ...body }),
  ).id;

async function keyOf(who: Someone): Promise<NewKeyView> {
  return okBody<NewKeyView>(await who.post(`${who.base}/keys`, { name: 'Worker' }));
}

async function call(secret: string, path: string, body: object): Promise<{ status: number; json: unknown }> {
  const response = await fetch(test.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, json: await response.json() };
}

/** Five cents. */
const audio = { model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } };
const messages = [{ role: 'user', content: 'Hello' }];

it('a hard budget lets what it pays for through, and refuses the rest with its name in every style', async () => {
  const who = await ownerOfNew(test, 'Hard');
  const { secret } = await keyOf(who);
  const id = await create({ name: 'Night runs', amount: '0.10', kind: 'hard' }, who);
  for (let i = 0; i < 2; i++) expect((await call(secret, '/v1/generate?wait=60', audio)).status).toBe(202);
  const refused = await call(secret, '/v1/generate', audio);
  expect(refused).toMatchObject({ status: 403, json: { error: { type: 'permission_error', code: 'budget_reached' } } });
  const { ends_at } = await budgetOf(who, id);
  const { message } = (refused.json as { error: { message: string } }).error;
  expect(message).toContain('The budget "Night runs" is reached');
  expect(message).toContain('0.00 USD of 0.10 USD is left');
  expect(message).toContain(`It resets at ${ends_at}`);
  const chat = await call(secret, '/v1/chat/completions', { model: 'sandbox/chat', messages });
  expect(chat).toMatchObject({ status: 403, json: { error: { message: expect.stringContaining('"Night runs"') } } });
  const anthropic = await call(secret, '/v1/messages', { model: 'sandbox/chat', max_tokens: 50, messages });
  expect(anthropic).toMatchObject({
    status: 403,
    json: { type: 'error', error: { type: 'permission_error', message: expect.stringContaining('"Night runs"') } },
  });
  const gemini = await call(secret, '/v1beta/models/sandbox%2Fchat:generateContent', {
    contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
  });
  expect(gemini).toMatchObject({ status: 403, json: { error: { message: expect.stringContaining('"Night runs"') } } });
  expect(await budgetOf(who, id)).toMatchObject({
    spent: { exact: '0.100000' },
    held: { exact: '0.000000' },
    used_percent: 100,
    is_hard: true,
    subject: null,
  });

  okBody(await who.send('PATCH', `${who.base}/budgets/${id}`, { amount: '0.15' }));
  expect((await call(secret, '/v1/generate?wait=60', audio)).status).toBe(202);
  expect((await call(secret, '/v1/generate', audio)).status).toBe(403);
  okBody(await who.send('PATCH', `${who.base}/budgets/${id}`, { kind: 'soft' }));
  expect((await call(secret, '/v1/generate?wait=60', audio)).status).toBe(202);
  expect(await budgetOf(who, id)).toMatchObject({ spent: { exact: '0.200000' }, used_percent: 133, is_hard: false });
  okBody(await who.send('DELETE', `${who.base}/budgets/${id}`));
  expect((await viewOf(who)).data).toEqual([]);
});

it('a chat fits its answer into what is left of a hard budget, as into a balance', async () => {
  const who = await ownerOfNew(test, 'Tight');
  const { secret } = await keyOf(who);
  const id = await create({ name: 'Tight', amount: '0.01', kind: 'hard' }, who);
  for (let i = 0; i < 40; i++) {
    const { status } = await call(secret, '/v1/chat/completions', { model: 'sandbox/chat', messages });
    const { spent } = await budgetOf(who, id);
    expect(Number(spent.exact)).toBeLessThanOrEqual(0.01);
    if (status === 403) break;
    expect(status).toBe(200);
  }
});

it('a budget is for a project, a key or a member that the account has; each mistake names its field', async () => {
  const { key } = await keyOf(owner);
  const foreign = await keyOf(stranger);
  const { choices } = await viewOf(owner);
  expect(choices.projects).toEqual([{ id: 'default', name: 'Default' }]);
  expect(choices.members.map(({ id }) => id)).toEqual([owner.user_id]);
  const soft = { amount: '5', kind: 'soft' };
  for (const [scope, subject] of [
    ['project', 'default'],
    ['key', key.id],
    ['member', owner.user_id],
  ] as const) {
    const id = await create({ ...soft, scope, subject });
    expect((await budgetOf(owner, id)).subject?.id).toBe(subject);
  }
  const refusals: [string, object][] = [
    ['amount', { ...soft, amount: '-1' }],
    ['amount', { ...soft, amount: 'much' }],
    ['period', { ...soft, period: 'year' }],
    ['scope', { ...soft, scope: 'galaxy' }],
    ['subject', { ...soft, scope: 'key' }],
    ['subject', { ...soft, scope: 'key', subject: foreign.key.id }],
    ['subject', { ...soft, scope: 'project', subject: 'project_no' }],
    ['subject', { ...soft, scope: 'member', subject: stranger.user_id }],
    ['kind', { ...soft, kind: 'harder' }],
    ['name', { ...soft, name: ' ' }],
  ];
  for (const [param, body] of refusals) {
    const refused = await owner.post(`${owner.base}/budgets`, {
      name: 'All',
      scope: 'account',
      period: 'month',
      ...body,
    });
    expect([refused.status, refused.json]).toMatchObject([400, { error: { param } }]);
  }
});

it('what a member may spend counts the keys that they made', async () => {
  const who = await ownerOfNew(test, 'Two people');
  const developer = await memberOf(test, who, 'developer');
  const [own, theirs] = [await keyOf(who), await keyOf({ ...developer, base: who.base })];
  await create({ scope: 'member', subject: developer.user_id, amount: '0.05', kind: 'hard' }, who);
  expect((await call(theirs.secret, '/v1/generate?wait=60', audio)).status).toBe(202);
  expect((await call(theirs.secret, '/v1/generate', audio)).status).toBe(403);
  expect((await call(own.secret, '/v1/generate?wait=60', audio)).status).toBe(202);
});

it('budgets of other accounts are not there, and a developer sees but does not change them', async () => {
  const [mine, theirs] = [
    await create({ amount: '1', kind: 'soft' }),
    await create({ amount: '1', kind: 'soft' }, stranger),
  ];
  expect((await viewOf(owner)).data.map(({ id }) => id)).not.toContain(theirs);
  for (const method of ['PATCH', 'DELETE'])
    expect((await owner.send(method, `${owner.base}/budgets/${theirs}`, { amount: '2' })).status).toBe(404);
  const developer = await memberOf(test, owner, 'developer');
  expect((await developer.get(`${owner.base}/budgets`)).status).toBe(200);
  expect((await developer.send('PATCH', `${owner.base}/budgets/${mine}`, { amount: '2' })).status).toBe(403);
  expect((await developer.post(`${owner.base}/budgets`, { amount: '2' })).status).toBe(403);
});

it('a budget has all its alerts, or those that are chosen, and they stay when something else is changed', async () => {
  const all = await create({ amount: '1', kind: 'soft' });
  expect((await budgetOf(owner, all)).alert_percents).toEqual([50, 80, 100]);
  const id = await create({ amount: '1', kind: 'hard', alert_percents: [100, 80] });
  const change = (body: object) => owner.send('PATCH', `${owner.base}/budgets/${id}`, body);
  okBody(await change({ amount: '2' }));
  expect(await budgetOf(owner, id)).toMatchObject({ alert_percents: [80, 100], amount: { amount: '2.00' } });
  okBody(await change({ alert_percents: [] }));
  expect(await budgetOf(owner, id)).toMatchObject({ alert_percents: [], amount: { amount: '2.00' } });
  for (const alert_percents of [[60], [50, 50], '50', null, [['50']]])
    expect((await change({ alert_percents })).json).toMatchObject({ error: { param: 'alert_percents' } });
  expect((await budgetOf(owner, id)).alert_percents).toEqual([]);
  for (const each of [all, id]) okBody(await owner.send('DELETE', `${owner.base}/budgets/${each}`));
});

it('the command line makes, changes, lists and removes budgets', async () => {
  const { ok, fails } = commandsBeside(test);
  const { account_id, key_id, call: callWith } = await test.client();
  const whose = ['--account', account_id];
  const { id } = await ok(
    'budget',
    'create',
    '0.05',
    ...whose,
    '--name',
    'CI',
    '--period',
    'total',
    '--key',
    key_id,
    '--hard',
  );
  expect((await callWith('POST', '/v1/generate?wait=60', audio)).status).toBe(202);
  expect((await callWith('POST', '/v1/generate', audio)).status).toBe(403);
  expect(await ok('budget', 'change', id, ...whose, '--amount', '0.2', '--soft')).toMatchObject({ amount: '0.200000' });
  expect((await callWith('POST', '/v1/generate?wait=60', audio)).status).toBe(202);
  expect(await ok('budget', 'list', ...whose)).toMatchObject({
    budgets: [{ id, name: 'CI', scope: 'key', subject: key_id, period: 'total', kind: 'soft', spent: '0.100000' }],
  });
  expect(await ok('budget', 'change', id, ...whose, '--alerts', '100,80')).toMatchObject({ alert_percents: [80, 100] });
  expect(await ok('budget', 'list', ...whose)).toMatchObject({ budgets: [{ id, alerts: [80, 100] }] });
  expect(await ok('budget', 'change', id, ...whose, '--alerts', 'none')).toMatchObject({ alert_percents: [] });
  await fails(2, 'budget', 'change', id, ...whose, '--alerts', '75');
  await ok('budget', 'remove', id, ...whose);
  await fails(1, 'budget', 'change', id, ...whose, '--hard');
  await fails(2, 'budget', 'create', '1', ...whose, '--name', 'X', '--period', 'year');
  await fails(1, 'budget', 'create', '1', ...whose, '--name', 'X', '--period', 'day', '--project', 'project_no');
});
