import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { checkService } from '../../src/alerts/service-checks.ts';
import { runAccountAlerts } from '../../src/alerts/watch.ts';
import { setThreshold } from '../../src/billing/alerts.ts';
import type { Model } from '../../src/catalog/model.ts';
import { newId } from '../../src/lib/ids.ts';
import { close, hold } from '../../src/money/holds.ts';
import { setAccountBudget } from '../../src/money/account-budgets.ts';
import { changeEndpoint, createEndpoint, findEndpoint, type NewEndpoint } from '../../src/webhooks/endpoints.ts';
import { publishEvent } from '../../src/webhooks/events.ts';
import { sendDelivery } from '../../src/webhooks/send.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { hour, minute, signal, worldOf } from './setup.ts';

let server: MailServer;
let receiver: Receiver;
let test: TestApp;
let world: ReturnType<typeof worldOf>;

const clock = testClock();
const now = () => new Date(clock.now());

beforeAll(async () => {
  [server, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  const mail = `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  const yaml = `version: 1\n${mail}\nwebhooks: { retry_delays: [1ms] }\n`;
  test = await startTestApp({ worker: false, clock, yaml, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  world = worldOf(test, clock);
});

afterAll(async () => {
  await test.stop();
  await Promise.all([server.stop(), receiver.stop()]);
});

beforeEach(async () => {
  await test.app.db.query('delete from webhook_endpoints');
  await test.app.db.query('delete from alerts');
});

async function look(after_ms = minute): Promise<string[]> {
  clock.pass(after_ms);
  server.mails.length = 0;
  await runAccountAlerts(test.app, signal);
  return server.mails.map(({ subject, to }) => `${subject} -> ${to.join(' ')}`);
}

async function endpointOf(account_id: string, path: string, events = ['*']): Promise<NewEndpoint> {
  const filters = { models: null, key_ids: null, project_ids: null, pairs: null };
  const fields = { url: `${receiver.url}${path}`, description: '', events, ...filters, enabled: true };
  const created = await createEndpoint(test.app.db, account_id, fields, now());
  if (!created) throw new Error('no endpoint');
  return created;
}

type Row = { account_id: string; id: string; jobs: number; event: string; body: string };

/** The deliveries of an account that wait, oldest first. */
function waiting(account_id: string): Promise<Row[]> {
  return test.app.db.query<Row>(
    `select d.account_id, d.id, d.jobs, d.event, e.body from deliveries d
       join webhook_events e on e.account_id = d.account_id and e.id = d.event_id
      where d.account_id = $1 and d.state = 'waiting' order by d.id`,
    [account_id],
  );
}

/** Makes the next attempt of all that waits, as a worker does. */
async function attemptAll(account_id: string): Promise<void> {
  for (const { id: delivery_id, jobs: job } of await waiting(account_id))
    await sendDelivery(test.app, {
      id: 'test',
      queue: 'delivery.send',
      attempt: 1,
      data: { account_id, delivery_id, job },
      signal,
    });
}

async function invoice(account_id: string): Promise<void> {
  const cost = { amount: '1.00', currency: 'USD', exact: '1.000000' };
  const data = { number: 'A-1', month: '2026-01', total: cost, supplement_to: null };
  await publishEvent(test.app.db, account_id, { type: 'invoice.created', data }, now());
}

it('an endpoint whose deliveries all fail is told of after a day, disabled after three with another mail, and over when enabled', async () => {
  const account_id = await world.account('Shop', { 'shop@example.com': 'owner', 'dev@example.com': 'developer' });
  receiver.answer('/away', 500);
  const { endpoint } = await endpointOf(account_id, '/away?token=secret');
  const host = new URL(receiver.url).host.replaceAll('.', '. ').replace(':', ' '); // as mails write it, so that nothing is a link
  for (const hours of [0, 12, 11]) {
    clock.pass(hours * hour);
    await invoice(account_id);
    await attemptAll(account_id);
    expect(await look()).toEqual([]);
  }
  clock.pass(2 * hour);
  await invoice(account_id);
  await attemptAll(account_id);
  expect(await look()).toEqual([`A webhook endpoint fails: ${host} in Shop -> shop@example.com`]);
  expect(server.mails[0]?.text).toContain('After 3 days of that it is disabled.');
  expect(server.mails[0]?.text).not.toContain('token=secret');
  expect(await look(60 * hour)).toEqual([]); // nothing was tried since
  await invoice(account_id);
  await attemptAll(account_id);
  expect(await look()).toEqual([`A webhook endpoint is disabled: ${host} in Shop -> shop@example.com`]);
  expect(await findEndpoint(test.app.db, endpoint)).toMatchObject({ enabled: false, disabled_reason: 'failing' });
  await invoice(account_id);
  await attemptAll(account_id); // what waited is dropped
  expect(await waiting(account_id)).toEqual([]);
  const audit = await test.app.db.query('select actor, action, subject from audit_entries where account_id = $1', [
    account_id,
  ]);
  expect(audit).toEqual([{ actor: 'the service', action: 'webhook_endpoint.disable', subject: endpoint.id }]);
  await changeEndpoint(test.app.db, endpoint, { ...endpoint, enabled: true }, now());
  expect(await look()).toEqual([`Closed: A webhook endpoint is disabled: ${host} in Shop -> shop@example.com`]);
  await expectExactBooks(test.app);
});

it('an endpoint that fails now and then, or once and then gets nothing, stays enabled', async () => {
  const account_id = await world.account('Flaky', { 'flaky@example.com': 'owner' });
  const { endpoint } = await endpointOf(account_id, '/flaky');
  for (let day = 0; day < 5; day++) {
    receiver.answer('/flaky', day === 2 ? 204 : 500);
    await invoice(account_id);
    await attemptAll(account_id);
    clock.pass(20 * hour);
  }
  expect((await look(96 * hour)).filter((mail) => mail.includes('disabled'))).toEqual([]);
  expect(await findEndpoint(test.app.db, endpoint)).toMatchObject({ enabled: true });
});

it('events of the balance and of budgets are published once, when their alert opens and when it becomes critical', async () => {
  const account_id = await world.account('Money', { 'money@example.com': 'owner' });
  await setThreshold(test.app.db, account_id, 5_000_000n, now());
  await endpointOf(account_id, '/money', ['balance.*', 'budget.*']);
  const key_id = await world.keyOf(account_id, 10_000_000n, 'Site');
  await world.spend(account_id, 8_000_000n, { key_id });
  await look();
  await look();
  await world.spend(account_id, 2_000_000n, { key_id });
  await look();
  const events = (await waiting(account_id)).map(({ body }) => JSON.parse(body));
  const of = (type: string) => events.filter((event) => event.type === type).map(({ data }) => data);
  expect(events).toHaveLength(4);
  expect(of('balance.low')).toMatchObject([
    { available: { amount: '2.00', currency: 'USD' }, threshold: { amount: '5.00' } },
    { available: { amount: '0.00' } },
  ]);
  expect(of('budget.threshold')).toMatchObject([
    { key_id, key_name: 'Site', used_percent: 80, limit: { amount: '10.00' } },
  ]);
  expect(of('budget.exceeded')).toMatchObject([{ key_id, used: { amount: '10.00' }, used_percent: 100 }]);
});

it('a balance that is now empty and now not, as its holds come and go, is published as empty once', async () => {
  const account_id = await world.account('Tight', { 'tight@example.com': 'owner' });
  await setThreshold(test.app.db, account_id, 5_000_000n, now());
  await endpointOf(account_id, '/tight', ['balance.low']);
  const key_id = await world.keyOf(account_id);
  await world.spend(account_id, 8_000_000n, { key_id });
  await look();
  for (const ref of ['task_tight_1', 'task_tight_2']) {
    await hold(test.app.db, { account_id, key_id, ref, amount: 2_000_000n, model: 'm', kind: 'image' }, now());
    await look();
    await close(test.app.db, { account_id, ref, cost: null }, now());
    await look();
  }
  const amounts = (await waiting(account_id)).map(({ body }) => JSON.parse(body).data.available.amount);
  expect(amounts).toEqual(['2.00', '0.00']);
  await world.topUp(account_id, 8_000_000n);
  await look();
  await world.spend(account_id, 10_000_000n, { key_id });
  await look();
  expect(await waiting(account_id)).toHaveLength(3);
  await expectExactBooks(test.app);
});

it('the end of a model is published once to each account that asks for it, and names no hidden model', async () => {
  const [asking, other] = [await world.account('Asks'), await world.account('Does not')];
  await endpointOf(asking, '/models', ['model.retiring']);
  await endpointOf(other, '/models', ['task.*']);
  const { models, settings } = test.app.catalog.current;
  const model = models.get('sandbox/image');
  if (!model) throw new Error('no model');
  const retirement = { on: now().toISOString().slice(0, 10), replaced_by: 'sandbox/video' };
  const ending: Model[] = [
    { ...model, retirement },
    { ...model, id: 'sandbox/secret', hidden: true, retirement },
  ];
  const catalog = { current: { settings, models: new Map(ending.map((each) => [each.id, each])) } };
  for (let times = 0; times < 2; times++) await checkService({ ...test.app, catalog });
  const rows = await waiting(asking);
  expect(rows.map(({ body }) => JSON.parse(body).data)).toEqual([
    { ends_on: retirement.on, models: [{ id: 'sandbox/image', replacement: 'sandbox/video' }] },
  ]);
  expect(await waiting(other)).toEqual([]);
});

it('a budget publishes each threshold of its period once, with its name and what is used', async () => {
  const account_id = await world.account('Frugal', { 'frugal@example.com': 'owner' });
  await endpointOf(account_id, '/frugal', ['budget.*']);
  const budget = { id: newId('budget'), account_id, name: 'Team', scope: 'account', subject: null } as const;
  const set = { ...budget, period: 'total', amount: 1_000_000n, is_hard: false } as const;
  expect(await setAccountBudget(test.app.db, set, now())).toBe('set');
  for (const amount of [490_000n, 10_000n, 0n, 400_000n, 200_000n]) {
    if (amount > 0n) await world.spend(account_id, amount);
    await look();
  }
  const events = (await waiting(account_id))
    .map(({ body }) => JSON.parse(body))
    .toSorted((one, other) => one.data.used_percent - other.data.used_percent); // made within one millisecond, ids have no order
  expect(events.map(({ type, data }) => [type, data.used_percent])).toEqual([
    ['budget.threshold', 50],
    ['budget.threshold', 90],
    ['budget.exceeded', 110],
  ]);
  expect(events[0].data).toEqual({
    key_id: null,
    key_name: null,
    budget_id: budget.id,
    budget_name: 'Team',
    limit: { amount: '1.00', currency: 'USD', exact: '1.000000' },
    used: { amount: '0.50', currency: 'USD', exact: '0.500000' },
    used_percent: 50,
    resets_at: null,
  });
  await expectExactBooks(test.app);
});
