import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { dashboardEndpoints } from '../../../src/dashboard/endpoints.ts';
import type {
  AdminAccount,
  AdminAccountPage,
  AdminCheck,
  AdminConfiguration,
  AdminDelivery,
  AdminFailure,
  AdminMargins,
  AdminModel,
  AdminOverview,
  AdminPrices,
  AdminQueue,
  AdminReload,
} from '../../../src/dashboard/views/admin.ts';
import type { Page } from '../../../src/dashboard/views/activity.ts';
import type { KeyPageView } from '../../../src/dashboard/views/keys.ts';
import type { AuditView } from '../../../src/dashboard/views/settings.ts';
import type { LedgerLine } from '../../../src/dashboard/views/billing.ts';
import type { Me } from '../../../src/dashboard/views/common.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../../helpers/app.ts';
import { mediaModel, required_prompt } from '../../helpers/catalog.ts';
import { browserOf } from '../../helpers/person.ts';
import { commandsBeside } from '../../cli/medley.ts';
import { ownerOfNew, okBody, type Someone } from '../people.ts';

const yaml = `
version: 1
net: { allow: ["127.0.0.0/8"] }
providers:
  sandbox: { adapter: sandbox }
models:${mediaModel({
  id: 'test/paid',
  schema: required_prompt,
  price: '0.04',
  routes: ['{ provider: sandbox, upstream_model: image, cost: [{ unit: image, amount: "0.025" }] }'],
})}
`;

let test: TestApp;
let operator: Someone;
let owner: Someone;
let stranger: Someone;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ yaml });
  [operator, owner, stranger] = await Promise.all([
    ownerOfNew(test, 'Operating'),
    ownerOfNew(test, 'Customer'),
    ownerOfNew(test, 'Stranger'),
  ]);
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  client = await test.client({ account_id: owner.account_id });
});

afterAll(() => test.stop());

const accountPath = (id = owner.account_id) => `/dash/admin/accounts/${id}`;
const filled = (path: string) =>
  path.replace('{account}', owner.account_id).replaceAll(/\{\+?\w+\}/g, owner.account_id);

const operating = dashboardEndpoints().filter(({ path }) => path.startsWith('/dash/admin'));
const calls = operating.map(({ method, path }) => [method, path] as const);

describe("the operator's endpoints", () => {
  it('are not an empty list', () => {
    expect(calls.length).toBeGreaterThan(15);
    expect(operating.every(({ session }) => session === 'operator')).toBe(true);
  });

  it.each(calls)('return 404 to members and 401 without a session: %s %s', async (method, path) => {
    const body = method === 'GET' ? undefined : {};
    const refused = await owner.send(method, filled(path), body);
    expect(refused.status).toBe(404);
    expect(refused.json).toMatchObject({ error: { message: 'There is nothing here.' } });
    expect((await browserOf(test.url).send(method, filled(path), body)).status).toBe(401);
  });

  const changing = dashboardEndpoints().filter(
    ({ method, path }) => method !== 'GET' && path.startsWith('/dash/accounts/{account}'),
  );

  it.each(changing.map(({ method, path }) => [method, path] as const))(
    'let an operator view an account of others and change nothing: %s %s',
    async (method, path) => {
      const { status, json } = await operator.send(method, filled(path), {});
      expect(status).toBe(403);
      expect(json).toMatchObject({ error: { message: expect.stringContaining('(operator)') } });
    },
  );
});

describe("an account on the operator's pages", () => {
  it('is found by a part of its name and by its id', async () => {
    const named = okBody<Page<AdminAccount>>(await operator.get('/dash/admin/accounts?search=custom'));
    expect(named.data.map(({ id }) => id)).toEqual([owner.account_id]);
    const by_id = okBody<Page<AdminAccount>>(await operator.get(`/dash/admin/accounts?search=${stranger.account_id}`));
    expect(by_id.data.map(({ name }) => name)).toEqual(['Stranger']);
  });

  it('is created with a currency and a credit that is in its log', async () => {
    const body = { name: ' New ', currency: 'USD', credit: '12.5' };
    const account = okBody<AdminAccount>(await operator.post('/dash/admin/accounts', body));
    expect(account).toMatchObject({ name: 'New', currency: 'USD', available: { amount: '12.50' }, status: 'active' });
    expect((await entries(account.id))[0]).toMatchObject({
      action: 'account.create',
      details: { credit: '12.500000' },
    });
    for (const wrong of [{ currency: 'QQQ' }, { name: ' ' }, { credit: '-1' }, { credit: '1e9' }]) {
      const answer = await operator.post('/dash/admin/accounts', { ...body, ...wrong });
      expect(answer.status).toBe(400);
      expect(answer.json).toMatchObject({ error: { param: Object.keys(wrong)[0] } });
    }
  });

  it('shows its people and its working keys', async () => {
    const page = okBody<AdminAccountPage>(await operator.get(accountPath()));
    expect(page.members).toMatchObject([{ role: 'owner', two_factor: false }]);
    const keys = okBody<KeyPageView>(await operator.get(accountPath() + '/keys'));
    expect(keys.data).toMatchObject([{ name: 'Test', shown_as: expect.stringContaining('…') }]);
    expect(keys.has_more).toBe(false);
    expect((await operator.get(accountPath(`${owner.account_id.slice(0, -4)}0000`))).status).toBe(404);
    expect((await operator.get(accountPath('x'))).status).toBe(404);
  });

  it('is credited once, however often the same request comes', async () => {
    const fresh = await ownerOfNew(test, 'Credited');
    const body = { amount: '25', reason: 'Paid by transfer', ref: 'click-1' };
    const path = `${accountPath(fresh.account_id)}/credit`;
    const answers = await Promise.all([1, 2, 3].map(() => operator.post(path, body)));
    for (const answer of answers) expect(okBody<AdminAccount>(answer).available.amount).toBe('35.00');
    const { data } = okBody<Page<LedgerLine>>(await fresh.get(`${fresh.base}/ledger`));
    expect(JSON.stringify(data).split('Paid by transfer')).toHaveLength(2);
    const audited = (await entries(fresh.account_id)).filter(({ action }) => action === 'account.credit');
    expect(audited).toHaveLength(1);
    expect(audited[0]).toMatchObject({ details: { amount: '25.000000', reason: 'Paid by transfer', ref: 'click-1' } });
    expect(data[0]?.booked_by).toEqual({ actor: audited[0]?.actor, audit_id: audited[0]?.id });
    const one = okBody<Page<AuditView>>(await operator.get(`/dash/admin/audit?entry=${audited[0]?.id}`));
    expect(one.data).toEqual(audited);
    expect((await operator.post(path, { ...body, amount: '26' })).status).toBe(409);
    expect((await operator.post(path, { ...body, amount: '-25' })).status).toBe(409);
  });

  it('is not credited by a ref of another account, not even at the same moment', async () => {
    const both = [await ownerOfNew(test, 'One'), await ownerOfNew(test, 'Other')];
    const body = { amount: '25', reason: 'Paid by transfer', ref: 'transfer-9' };
    const answers = await Promise.all(
      both.map(({ account_id }) => operator.post(`${accountPath(account_id)}/credit`, body)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 409)?.json).toMatchObject({
      error: { message: 'This reference was booked before, for another account. Nothing was booked.' },
    });
  });

  it('is debited no more than it has', async () => {
    const fresh = await ownerOfNew(test, 'Debited');
    const path = `${accountPath(fresh.account_id)}/credit`;
    const less = okBody<AdminAccount>(await operator.post(path, { amount: '-4.5', reason: 'A mistake', ref: 'a' }));
    expect(less.available.amount).toBe('5.50');
    for (const amount of ['-5.51', '0', '', 'all', '1.0000001']) {
      const { status, json } = await operator.post(path, { amount, reason: 'x', ref: `ref ${amount}` });
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { param: 'amount' } });
    }
    expect((await operator.post(path, { amount: '1', ref: 'b' })).json).toMatchObject({ error: { param: 'reason' } });
    await expectExactBooks(test.app);
  });

  it('that is blocked starts nothing new until it is unblocked', async () => {
    const fresh = await ownerOfNew(test, 'Blocked');
    const { call } = await test.client({ account_id: fresh.account_id });
    const works = async () => {
      const { status } = await call('POST', '/v1/generate?wait=30', { model: 'test/paid', input: { prompt: 'x' } });
      return status;
    };
    expect(await works()).toBe(202);
    const path = `${accountPath(fresh.account_id)}/status`;
    expect(okBody<AdminAccount>(await operator.post(path, { status: 'blocked' })).status).toBe('blocked');
    await expect.poll(works).toBe(403);
    expect((await fresh.get(`${fresh.base}/balance`)).status).toBe(200);
    expect((await operator.post(path, { status: 'gone' })).status).toBe(400);
    okBody(await operator.post(path, { status: 'active' }));
    await expect.poll(works).toBe(202);
    const actions = (await entries(fresh.account_id)).map(({ action }) => action);
    expect(actions).toEqual(['account.unblock', 'account.block']);
  });

  it('has keys whose limits an operator changes, which its people can read', async () => {
    const path = `${accountPath()}/keys/${client.key_id}/limit`;
    okBody(await operator.post(path, { limit: '7.5' }));
    const { data } = okBody<KeyPageView>(await operator.get(accountPath() + '/keys'));
    expect(data).toMatchObject([{ id: client.key_id, limit: { exact: '7.500000' } }]);
    expect((await client.call('GET', '/v1/key')).text).toContain('7.50');
    okBody(await operator.post(path, { limit: null }));
    expect((await operator.post(path, { limit: '-1' })).status).toBe(400);
    expect(
      (await operator.post(`${accountPath(stranger.account_id)}/keys/${client.key_id}/limit`, { limit: '1' })).status,
    ).toBe(404);
    const done = (await entries(owner.account_id)).filter(({ action }) => action === 'key.change');
    expect(done.map(({ details }) => details?.['limit'])).toEqual([null, '7.500000']);
  });

  it('that failed too often is released by an operator', async () => {
    const fresh = await ownerOfNew(test, 'Unlucky');
    const { call } = await test.client({ account_id: fresh.account_id });
    const fail = { model: 'test/paid', input: { prompt: '[[fail]]' } };
    expect((await call('POST', '/v1/generate?wait=30', fail)).json.status).toBe('failed');
    const counted = async () =>
      okBody<AdminAccountPage>(await operator.get(accountPath(fresh.account_id))).failures.counted;
    expect(await counted()).toBe(1);
    expect(okBody(await operator.post(`${accountPath(fresh.account_id)}/forget-failures`))).toEqual({ forgotten: 1 });
    expect(await counted()).toBe(0);
    expect((await entries(fresh.account_id))[0]).toMatchObject({ action: 'account.forget-failures' });
    await expectExactBooks(test.app);
  });

  it('is handed over by a link that signs its owner in once', async () => {
    const fresh = await ownerOfNew(test, 'Handed over');
    const { link } = okBody<{ link: string }>(await operator.post(`${accountPath(fresh.account_id)}/login-link`));
    const token = new URL(link).searchParams.get('token');
    const someone = browserOf(test.url);
    expect((await someone.post('/auth/sign-in/link', { token })).status).toBe(200);
    expect(okBody<Me>(await someone.get('/dash/me')).accounts).toMatchObject([{ id: fresh.account_id, role: 'owner' }]);
    expect((await browserOf(test.url).post('/auth/sign-in/link', { token })).status).not.toBe(200);
    expect(JSON.stringify(await entries(fresh.account_id))).not.toContain(token);
  });
});

describe('deleting an account', () => {
  it('an operator deletes one that never had money or work; one with money stays and the answer says why', async () => {
    const account = okBody<AdminAccount>(
      await operator.post('/dash/admin/accounts', { name: 'Mistake', currency: 'USD' }),
    );
    okBody(await operator.send('DELETE', accountPath(account.id)));
    expect((await operator.get(accountPath(account.id))).status).toBe(404);
    const actions = (await entries(account.id)).map(({ action }) => action);
    expect(actions).toEqual(['account.delete', 'account.create']);
    const refused = await operator.send('DELETE', accountPath());
    expect(refused.status).toBe(409);
    expect(refused.text).toContain('entries in its ledger');
    expect((await operator.get(accountPath())).status).toBe(200);
  });
});

describe('viewing an account as its people do', () => {
  it('is recorded there and adds it to what the operator sees', async () => {
    okBody(await operator.post(`${accountPath()}/view`));
    expect((await entries(owner.account_id))[0]).toMatchObject({ action: 'account.view' });
    const { accounts } = okBody<Me>(await operator.get(`/dash/me?view=${owner.account_id}`));
    expect(accounts.at(-1)).toMatchObject({ id: owner.account_id, role: 'operator', rights: ['read'] });
    expect((await operator.get(`${owner.base}/balance`)).status).toBe(200);
  });

  it('is recorded once by the service itself, whatever the operator opens, and however', async () => {
    const { base, account_id } = await ownerOfNew(test, 'Read by a program');
    for (const path of ['tasks', 'balance', 'activity.csv'])
      expect((await operator.get(`${base}/${path}`)).status).toBe(200);
    const views = (await entries(account_id)).filter(({ action }) => action === 'account.view');
    expect(views).toMatchObject([{ actor: expect.any(String), address: '127.0.0.1', subject: account_id }]);
  });

  it('is reserved for operators', async () => {
    const { accounts } = okBody<Me>(await owner.get(`/dash/me?view=${stranger.account_id}`));
    expect(accounts.map(({ id }) => id)).toEqual([owner.account_id]);
    expect((await owner.get(`${stranger.base}/balance`)).status).toBe(404);
  });
});

describe("the service on the operator's pages", () => {
  const generate = (prompt: string, webhook_url?: string) =>
    client.call('POST', '/v1/generate?wait=30', {
      model: 'test/paid',
      input: { prompt },
      ...(webhook_url !== undefined && { webhook_url }),
    });

  it('has made one thing and failed to make another', async () => {
    expect((await generate('One')).json.status).toBe('succeeded');
    const failed = await generate('[[fail]]', 'http://127.0.0.1:65001/hook');
    expect(failed.json.status, failed.text).toBe('failed');
  });

  it('is summarized on one page', async () => {
    const view = okBody<AdminOverview>(await operator.get('/dash/admin/overview'));
    expect(view.lights.map(({ name }) => name)).toEqual([
      'Queue',
      'Workers',
      'Routes',
      'Generations',
      'Chat',
      'Books',
      'Journal',
    ]);
    expect(view.lights.slice(-2)).toMatchObject([{ state: 'good' }, { state: 'good' }]);
    expect(view.tasks.failed_24h).toBeGreaterThan(0);
  });

  it('shows the price of each model beside the cost of its routes, and the margin between them', async () => {
    const { data } = okBody<AdminPrices>(await operator.get('/dash/admin/prices'));
    expect(data.find(({ model }) => model === 'test/paid')).toMatchObject({
      price: [{ unit: 'image', amount: '0.04', per: 1, currency: 'USD' }],
      routes: [
        {
          provider: 'sandbox',
          cost: [{ unit: 'image', amount: '0.025', per: 1, currency: 'USD' }],
          margin_percent: 37.5,
        },
      ],
    });
    expect(data.map(({ model }) => model)).toEqual([...test.app.catalog.current.models.keys()]);
  });

  it('shows the margins of `medley margins` on the page and in the file', async () => {
    for (const by of ['route', 'account']) {
      const { month, data } = okBody<AdminMargins>(await operator.get(`/dash/admin/margins?by=${by}`));
      const output = await commandsBeside(test).ok('margins', '--by', by, '--month', month);
      const shown = data.map(({ name, currency, runs, revenue, upstream_cost, margin, unknown }) => {
        return [name, currency, runs, revenue.exact, upstream_cost.exact, margin.exact, unknown];
      });
      expect(shown.length).toBeGreaterThan(0);
      expect(shown).toEqual(cellsOf(output));
      const file = await operator.get(`/dash/admin/margins.csv?by=${by}`);
      expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8');
      expect(file.text.trim().split('\r\n').slice(1)).toEqual(cellsOf(output).map((cells) => cells.join(',')));
    }
    expect((await operator.get('/dash/admin/margins?month=2026-13')).status).toBe(400);
    expect((await operator.get('/dash/admin/margins?by=key')).status).toBe(400);
  });

  it('lists failures, of chat as well, and the same as a file', async () => {
    const messages = [{ role: 'user', content: '[[error 503]]' }];
    expect((await client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages })).status).toBe(502);
    const read = async () => okBody<{ data: AdminFailure[] }>(await operator.get('/dash/admin/failures')).data;
    await expect.poll(async () => (await read()).length).toBe(2); // records of calls are written behind the answer
    const data = await read();
    expect(data).toMatchObject([
      { of: 'generation', route: 'test/paid#sandbox', state: 'failed', count: 2 },
      { of: 'chat', route: 'sandbox/chat#sandbox', state: 'not_started', count: 1 },
    ]);
    const { text } = await operator.get('/dash/admin/failures.csv');
    expect(text).toContain(data[0]?.route);
  });

  it('lists deliveries of all accounts page by page', async () => {
    const path = '/dash/admin/deliveries';
    const { data } = okBody<Page<AdminDelivery>>(await operator.get(path));
    expect(data).toMatchObject([{ account_id: owner.account_id, url: 'http://127.0.0.1:65001/hook' }]);
    const of = async (query: string) => okBody<Page<AdminDelivery>>(await operator.get(path + query)).data.length;
    expect(await of('?state=delivered')).toBe(0);
    expect(await of(`?account=${stranger.account_id}`)).toBe(0);
    expect(await of(`?account=${owner.account_id}`)).toBe(1);
    expect(await of(`?after=${data[0]?.id}`)).toBe(0);
    expect((await operator.get(`${path}?state=lost`)).status).toBe(400);
    const again = () => operator.post(`${path}/${data[0]?.id}/resend`);
    expect((await again()).status).toBe(202);
    expect((await entries(owner.account_id))[0]).toMatchObject({ action: 'webhook.resend', subject: data[0]?.id });
    expect((await operator.post(`${path}/none/resend`)).status).toBe(404);
  });

  it('lists routes, and restores one at once', async () => {
    const models = async () => okBody<{ data: AdminModel[] }>(await operator.get('/dash/admin/models')).data;
    const [route] = (await models()).find(({ id }) => id === 'test/paid')?.routes ?? [];
    expect(route).toMatchObject({ state: 'closed', provider: 'sandbox' });
    okBody(await operator.post('/dash/admin/routes/reset', { route: route?.name }));
    expect((await entries())[0]).toMatchObject({ action: 'route.reset', subject: route?.name });
    expect((await operator.post('/dash/admin/routes/reset', {})).status).toBe(400);
  });

  it('lists the audit log by account and action, and the same as a file', async () => {
    const all = await entries();
    expect(all.length).toBeGreaterThan(5);
    const views = okBody<Page<AuditView>>(await operator.get('/dash/admin/audit?action=account.view')).data;
    expect(views.map(({ action }) => action)).toEqual(views.map(() => 'account.view'));
    expect(views.map(({ account_id }) => account_id)).toContain(owner.account_id);
    const older = okBody<Page<AuditView>>(await operator.get(`/dash/admin/audit?after=${all[0]?.id}`)).data;
    expect(older.map(({ id }) => id)).toEqual(all.slice(1).map(({ id }) => id));
    const { text } = await operator.get('/dash/admin/audit.csv');
    for (const { id } of all) expect(text).toContain(id);
    expect((await operator.get('/dash/admin/audit?after=x')).status).toBe(400);
  });

  it('shows its configuration without a secret and reads it again', async () => {
    const { providers, file, settings } = okBody<AdminConfiguration>(await operator.get('/dash/admin/configuration'));
    expect(settings).toContainEqual({
      name: 'Addresses allowed beyond public ones',
      value: '127.0.0.0/8',
    });
    expect(file).toBe(test.app.config.config_file);
    expect(providers).toContainEqual({ name: 'sandbox', adapter: 'sandbox', base_url: null, key: 'not_needed' });
    expect(okBody<AdminReload>(await operator.post('/dash/admin/reload'))).toMatchObject({ ok: true });
    await expect(test.configure(`${yaml}\nnonsense: true\n`)).rejects.toThrow('nonsense');
    const check = async () => okBody<AdminCheck>(await operator.get('/dash/admin/configuration/check'));
    expect(await check()).toMatchObject({ ok: false, errors: [expect.stringContaining('nonsense')] });
    const refused = okBody<AdminReload>(await operator.post('/dash/admin/reload'));
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining('nonsense') });
    await test.configure(yaml);
    expect(await check()).toMatchObject({ file: test.app.config.config_file, ok: true, errors: [] });
  });

  const queue = async () => okBody<AdminQueue>(await operator.get('/dash/admin/queue'));

  it('lists its queues and the workers on them', async () => {
    expect((await queue()).queues.length).toBeGreaterThan(0);
    const { version } = okBody<AdminConfiguration>(await operator.get('/dash/admin/configuration'));
    await expect
      .poll(async () => (await queue()).nodes)
      .toMatchObject([{ role: 'all', version, is_alive: true, is_paused: false }]);
    expect((await queue()).nodes[0]?.name).toContain(String(process.pid));
  });

  it('lists the limits of its process with what is in use and what waits', async () => {
    const { limits } = await queue();
    expect(limits).toHaveLength(Object.keys(test.app.limits).length);
    expect(new Set(limits.map(({ name }) => name)).size).toBe(limits.length);
    const files = { name: 'Requests with files', unit: null, in_use: 0, waiting: 0, bound: 64, key_bound: 8 };
    expect(limits).toContainEqual(files);
    const chat_calls = { name: 'Chat, embeddings, rankings and moderation', bound: null, key_bound: 200 };
    expect(limits).toContainEqual(expect.objectContaining(chat_calls));
    const permits = Array.from({ length: 8 }, () => test.app.limits.temp_files.tryAcquire('acc'));
    const waiting = test.app.limits.temp_files.acquire('acc');
    expect((await queue()).limits).toContainEqual({ ...files, in_use: 8, waiting: 1 });
    for (const permit of [...permits, await (permits[0]?.release(), waiting)]) permit?.release();
    expect((await queue()).limits).toContainEqual(files);
  });

  it('pauses a worker, which takes nothing until it is resumed', async () => {
    const id = (await queue()).nodes[0]?.id;
    const pause = (paused: boolean) => operator.post(`/dash/admin/nodes/${id}/pause`, { paused });
    okBody(await pause(true));
    await expect.poll(async () => (await queue()).nodes[0]?.is_paused).toBe(true);
    const lights = okBody<AdminOverview>(await operator.get('/dash/admin/overview')).lights;
    expect(lights.find(({ name }) => name === 'Workers')).toMatchObject({ state: 'bad', detail: 'all are paused' });
    let begun = '';
    const begin = async () => {
      const body = { model: 'test/paid', input: { prompt: 'x' } };
      const { json } = await client.call('POST', '/v1/generate?wait=1', body);
      begun = json.id;
      return json.status;
    };
    await expect.poll(begin).toBe('queued'); // the worker hears of it a moment after the row says so
    okBody(await pause(false));
    const now = async () => (await client.call('GET', `/v1/tasks/${begun}`)).json.status;
    await expect.poll(now).toBe('succeeded');
    expect((await entries()).slice(0, 2)).toMatchObject([{ action: 'worker.resume' }, { action: 'worker.pause' }]);
    expect((await operator.post('/dash/admin/nodes/none/pause', { paused: true })).status).toBe(404);
  });

  it('starts a failed job again by hand, and ends and refunds a hanging task', async () => {
    const body = { model: 'test/paid', input: { prompt: '[[delay 3600s]] x' } };
    const { json } = await client.call('POST', '/v1/generate', body);
    const status = async () => (await client.call('GET', `/v1/tasks/${json.id}`)).json.status;
    await expect.poll(status).toBe('running');
    const { db } = test.app;
    const spoil = `update pgboss.job set retry_count = 3, output = '{"message":"broken"}', start_after = now() + interval '1 hour'
      where singleton_key = $1 and state < 'active' returning id`;
    const [job] = await vi.waitUntil(
      async () => {
        const rows = await db.query<{ id: string }>(spoil, [json.id]);
        return rows.length === 1 && rows;
      },
      { timeout: 120_000 },
    );
    const mine = async () => (await queue()).troubled.filter(({ key }) => key === json.id);
    expect(await mine()).toMatchObject([{ id: job?.id, attempts: 3, reason: 'broken', state: 'later' }]);
    okBody(await operator.post(`/dash/admin/jobs/${job?.id}/requeue`));
    await expect.poll(mine).toEqual([]);
    expect((await operator.post(`/dash/admin/jobs/${job?.id}/requeue`)).status).toBe(404);
    const fail = (reason: string) => operator.post(`/dash/admin/tasks/${json.id}/fail`, { reason });
    expect((await fail('')).status).toBe(400);
    okBody(await fail('It hangs'));
    expect(await status()).toBe('failed');
    expect((await fail('It hangs')).status).toBe(409);
    expect((await entries(owner.account_id))[0]).toMatchObject({
      action: 'task.fail',
      details: { reason: 'It hangs' },
    });
    await expectExactBooks(test.app);
  });
});

/** The rows of `medley margins --json`. */
function cellsOf(margins: object): unknown[][] {
  const { rows } = margins as { rows: Record<string, unknown>[] };
  const names = ['name', 'currency', 'runs', 'revenue', 'upstream_cost', 'margin', 'unknown'];
  return rows.map((row) => names.map((name) => row[name]));
}

/** The log: of an account, or of the whole service. */
async function entries(account?: string): Promise<AuditView[]> {
  const query = account === undefined ? '' : `?account=${account}`;
  return okBody<Page<AuditView>>(await operator.get(`/dash/admin/audit${query}`)).data;
}
