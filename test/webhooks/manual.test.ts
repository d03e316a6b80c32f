import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { findAccount, type Account } from '../../src/accounts/accounts.ts';
import { resend, sendTest } from '../../src/webhooks/manual.ts';
import { findDelivery, listDeliveryAttempts, type Delivery } from '../../src/webhooks/delivery.ts';
import { rescueDeliveries } from '../../src/webhooks/rescue.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { finishTask, pass, patient_yaml, setStage, until, type Stage } from './setup.ts';

let stage: Stage;
let account: Account;

beforeAll(async () => {
  stage = await setStage({ yaml: patient_yaml });
  account = await accountOf(stage);
});
afterEach(() => expectExactBooks(stage.app));
afterAll(() => stage.stop());

async function accountOf({ app, client }: Stage): Promise<Account> {
  const own_account = await findAccount(app.db, client.account_id);
  if (!own_account) throw new Error('no account');
  return own_account;
}

/** As by a process that dies once it has its slot: the attempt never ends. */
async function beginAndDie(url: string, count: number): Promise<void> {
  const dead = { ...stage.app, guard: { ...stage.app.guard, send: () => new Promise<never>(() => undefined) } };
  for (let i = 0; i < count; i++) void sendTest(dead, account, url, '{}');
  await until('they have slots', async () => (await testsOf(stage, url)).length === count);
}

async function testsOf({ app }: Stage, url: string): Promise<Delivery[]> {
  const rows = await app.db.query<{ id: string }>(
    'select id from deliveries where url = $1 and task_id is null order by id',
    [url],
  );
  const deliveries = await Promise.all(rows.map(({ id }) => findDelivery(app.db, id)));
  return deliveries.filter((delivery) => delivery !== undefined);
}

async function throttled(): Promise<number> {
  const rows = await stage.app.db.query<{ n: number }>('select count(*)::int as n from throttled_deliveries');
  return rows[0]?.n ?? 0;
}

test('slots of test deliveries whose sender died are free at their timeout for waiting and new deliveries', async () => {
  const { client, receiver, app } = stage;
  const url = `${receiver.url}/died`;
  await beginAndDie(url, 4);
  await finishTask(client, url);
  await until('it waits for a slot', async () => (await throttled()) === 1);
  await pass(stage, 300_000); // as long as an attempt may take
  await rescueDeliveries(app);
  await receiver.nth('/died', 1);
  await finishTask(client, url);
  await receiver.nth('/died', 2);
  expect(await throttled()).toBe(0);
});

test('a test delivery whose sender died is not sent by another node, reports what happened, and can be sent again', async () => {
  const { receiver, app } = stage;
  const url = `${receiver.url}/alone`;
  await beginAndDie(url, 1);
  await pass(stage, 420_000); // and two minutes more
  await rescueDeliveries(app);
  const [died] = await testsOf(stage, url);
  if (!died) throw new Error('there is no delivery');
  expect(died).toMatchObject({ state: 'dropped', attempts: 1 });
  expect(await listDeliveryAttempts(app.db, died)).toMatchObject([
    { number: 1, status: null, error: 'Nobody knows: the process that sent it ended before there was an answer.' },
  ]);
  await rescueDeliveries(app);
  expect(receiver.open('/alone') + receiver.received.filter(({ path }) => path === '/alone').length).toBe(0);
  expect(await resend(app, died)).toBe('sent');
  await receiver.nth('/alone', 1);
});

test('a test delivery whose timeout exceeds the wait of the sweep keeps its slot until then and is sent once', async () => {
  const patient = await setStage({ yaml: patient_yaml });
  try {
    const { receiver, app } = patient;
    const url = `${receiver.url}/slow`;
    receiver.answer('/slow', 'hang');
    const sent = sendTest(app, await accountOf(patient), url, '{}');
    await receiver.nth('/slow', 1);
    await pass(patient, 240_000);
    await rescueDeliveries(app);
    const [begun] = await testsOf(patient, url);
    expect(await app.engine.liveKeys([begun?.id ?? ''])).toEqual(new Set()); // nobody else is asked to send it
    receiver.release('/slow', 200);
    expect(await sent).toMatchObject({ delivered: true, status: 200 });
    expect(await testsOf(patient, url)).toMatchObject([{ state: 'delivered', attempts: 1 }]);
    expect(receiver.most('/slow')).toBe(1);
  } finally {
    await patient.stop();
  }
});
