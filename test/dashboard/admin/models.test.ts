import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Page } from '../../../src/dashboard/views/activity.ts';
import type { AuditView } from '../../../src/dashboard/views/settings.ts';
import type { AdminModel, AdminTestCall, AdminTestCallPlan } from '../../../src/dashboard/views/admin.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../../helpers/app.ts';
import { ownerOfNew, signInAs, okBody, type Someone } from '../people.ts';
import { mediaModel, required_prompt } from '../../helpers/catalog.ts';

/** The work of operators with models and their routes. */

const yaml = `
version: 1
providers:
  sandbox: { adapter: sandbox }
models:${mediaModel({
  id: 'test/two',
  schema: required_prompt,
  price: '0.04',
  routes: [
    '{ id: a, provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.025" }] }',
    '{ id: b, provider: sandbox, upstream_model: image }',
  ],
})}
`;

let test: TestApp;
let operator: Someone;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ yaml });
  operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  client = await test.client({ credit: '5' });
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function entries(): Promise<AuditView[]> {
  return okBody<Page<AuditView>>(await operator.get('/dash/admin/audit')).data;
}

async function modelNamed(id: string): Promise<AdminModel | undefined> {
  const { data } = okBody<{ data: AdminModel[] }>(await operator.get('/dash/admin/models'));
  return data.find((model) => model.id === id);
}

describe('models and routes that change while the service runs', () => {
  const model = 'test/two';
  const run = async (of = client) => {
    const { status, json } = await of.call('POST', '/v1/generate?wait=30', { model, input: { prompt: 'x' } });
    return { status, json };
  };
  const usedBy = async (task_id: string) => {
    const rows = await test.app.db.query<{ route: string }>('select route from attempts where task_id = $1', [task_id]);
    return rows.map(({ route }) => route);
  };
  const statusOf = async (of = client) => (await of.call('GET', `/v1/models/${model}`)).json.status;

  it('a model that is switched off accepts nothing on any node until it is switched on', async () => {
    const node = await test.beside({ yaml });
    const there = await node.client({ account_id: client.account_id });
    expect(await statusOf(there)).toBe('available');
    okBody(await operator.post('/dash/admin/models/switch', { model, on: false }));
    expect(await statusOf()).toBe('unavailable');
    const refused = await run();
    expect(refused).toMatchObject({ status: 502, json: { error: { type: 'upstream_error' } } });
    expect(refused.json.error.message).toContain('switched off');
    await expect.poll(() => statusOf(there)).toBe('unavailable');
    await node.stop();
    await test.configure(`${yaml}\n# read again`);
    expect(await statusOf()).toBe('unavailable');
    okBody(await operator.post('/dash/admin/models/switch', { model, on: true }));
    expect((await run()).status).toBe(202);
    expect(await test.app.db.query('select 1 from model_overrides')).toEqual([]);
    expect((await entries()).slice(0, 2)).toMatchObject([
      { action: 'model.on', subject: model },
      { action: 'model.off', subject: model },
    ]);
  });

  it('a chat model that is switched off accepts nothing on any node until it is switched on', async () => {
    const ask = () =>
      client.call('POST', '/v1/chat/completions', {
        model: 'sandbox/chat',
        messages: [{ role: 'user', content: 'x' }],
      });
    okBody(await operator.post('/dash/admin/models/switch', { model: 'sandbox/chat', on: false }));
    expect(await ask()).toMatchObject({ status: 502, json: { error: { type: 'upstream_error' } } });
    okBody(await operator.post('/dash/admin/models/switch', { model: 'sandbox/chat', on: true }));
    expect((await ask()).status).toBe(200);
  });

  it('routes are tried in the order that an operator sets', async () => {
    expect(await usedBy((await run()).json.id)).toEqual([`${model}#a`]);
    okBody(await operator.post('/dash/admin/models/order', { model, routes: ['b', 'a'] }));
    expect(await usedBy((await run()).json.id)).toEqual([`${model}#b`]);
    expect(await modelNamed(model)).toMatchObject({ is_reordered: true, routes: [{ id: 'b' }, { id: 'a' }] });
    for (const routes of [['a', 'a'], ['c'], 'a'])
      expect((await operator.post('/dash/admin/models/order', { model, routes })).status).toBe(400);
    okBody(await operator.post('/dash/admin/models/order', { model, routes: [] }));
    expect(await modelNamed(model)).toMatchObject({ is_reordered: false, routes: [{ id: 'a' }, { id: 'b' }] });
  });

  it('a drained route accepts nothing new, and its running tasks continue', async () => {
    const slow = { model, input: { prompt: '[[delay 4s]] x' } };
    const { json: begun } = await client.call('POST', '/v1/generate', slow);
    const now = async () => (await client.call('GET', `/v1/tasks/${begun.id}`)).json.status;
    await expect.poll(now).not.toBe('queued'); // a machine that stands still may find it ended
    const drain = (route: string, drained: boolean) =>
      operator.post('/dash/admin/routes/drain', { model, route, drained });
    okBody(await drain('a', true));
    expect(await modelNamed(model)).toMatchObject({ routes: [{ is_drained: true }, { is_drained: false }] });
    expect(await statusOf()).toBe('degraded');
    expect(await usedBy((await run()).json.id)).toEqual([`${model}#b`]);
    await expect.poll(now).toBe('succeeded');
    okBody(await drain('b', true));
    expect(await statusOf()).toBe('unavailable');
    expect((await run()).status).toBe(502);
    for (const route of ['a', 'b']) okBody(await drain(route, false));
    expect(await statusOf()).toBe('available');
    expect((await drain('c', true)).status).toBe(404);
    expect((await operator.post('/dash/admin/routes/drain', { model: 'no/model', route: 'a' })).status).toBe(404);
  });
});

describe('a test call of a route', () => {
  const path = '/dash/admin/routes/test';
  const route = { model: 'test/two', route: 'a' };

  it('shows what would be sent and what it would cost, and sends nothing', async () => {
    const plan = okBody<AdminTestCallPlan>(await operator.post(path, route));
    expect(plan).toMatchObject({ estimated_cost: '0.040000', upstream_estimate: '0.025000', currency: 'USD' });
    expect(plan.sent).toContain('prompt');
    const wrong = await operator.post(path, { ...route, input: '{"prompt": 5}' });
    expect(wrong).toMatchObject({ status: 422, json: { error: { param: 'input' } } });
    expect((await operator.post(path, { model: 'test/two', route: 'none' })).status).toBe(404);
    const chat = okBody<AdminTestCallPlan>(await operator.post(path, { model: 'sandbox/chat', route: 'sandbox' }));
    expect(chat.input).toContain('hello');
  });

  it('is sent on request, is in the log, and costs no account anything', async () => {
    const before = await test.app.db.query('select count(*) from ledger_entries');
    const begin = () => operator.post(path, { ...route, real: true, input: '{"prompt": "[[delay 4s]] A test"}' });
    const answers = await Promise.all([begin(), begin()]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    const [begun] = answers.filter(({ status }) => status === 202).map((answer) => okBody<AdminTestCall>(answer));
    const id = begun?.id ?? '';
    const now = async () => okBody<AdminTestCall>(await operator.get(`/dash/admin/test-calls/${id}`));
    await expect.poll(async () => (await now()).is_running).toBe(false);
    const { outcome, files, cost } = await now();
    expect({ outcome, cost }).toEqual({ outcome: 'done', cost: '0.040000' });
    const image = await fetch(test.url + files[0]?.url);
    expect(image.status).toBe(401);
    const { status, headers } = await operator.get(files[0]?.url ?? '');
    expect([status, headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(await test.app.db.query('select count(*) from ledger_entries')).toEqual(before);
    await expect
      .poll(async () => (await entries()).slice(0, 2)) // the log follows the result
      .toMatchObject([
        { action: 'route.tested', subject: 'test/two#a', details: { outcome: 'done' } },
        { action: 'route.test', account_id: null, details: { upstream_estimate: '0.025000' } },
      ]);
    expect((await operator.get('/dash/admin/test-calls/none')).status).toBe(404);
  });
});

it('the dashboard restores a route that another node has left out', async () => {
  const route = 'test/two#a';
  await test.app.health.noteFailure(route, 'acct_any', { cause: 'timeout', pause_ms: 600_000 });
  const node = await test.beside();
  const there = await signInAs(node, operator.user_id, operator.account_id);
  okBody(await there.post('/dash/admin/routes/reset', { route }));
  await node.stop();
  const states = async () => (await modelNamed('test/two'))?.routes.map(({ state }) => state);
  await expect.poll(states).toEqual(['closed', 'closed']); // a node believes what it knows for a second
});
