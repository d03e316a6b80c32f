// isolated: it arms failpoints of its process
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Account } from '../../src/accounts/accounts.ts';
import { atFailpoint } from '../../src/lib/failpoint.ts';
import { resend } from '../../src/webhooks/manual.ts';
import { readDue, targetOf, type DueAttempt } from '../../src/webhooks/delivery.ts';
import type { Begun, AttemptEnd } from '../../src/webhooks/delivery-slots.ts';
import { removeOldDeliveries, rescueDeliveries } from '../../src/webhooks/rescue.ts';
import { sendDelivery } from '../../src/webhooks/send.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { queueDelivery, setStage, until, type Stage } from './setup.ts';

// Steps of two workers in an order that is chosen here: no worker runs.

let stage: Stage;
let account_id: Account['id'];

beforeAll(async () => {
  stage = await setStage({ worker: false });
  account_id = stage.client.account_id;
});
afterEach(async () => {
  await stage.app.db.query('delete from delivery_slots');
  await stage.app.db.query('delete from throttled_deliveries');
  await stage.app.db.query('delete from slow_endpoints');
  await stage.app.db.query('delete from deliveries');
  await expectExactBooks(stage.app);
});
afterAll(() => stage.stop());

const never = new AbortController().signal;
const delay_ms = 10_000;
const day_ms = 86_400_000;

const queue = (url: string) => queueDelivery(stage.app, account_id, url);

const queueMany = (size: number, url: string) => Promise.all(Array.from({ length: size }, () => queue(url)));

const beginMany = async (size: number, url: string) => Promise.all((await queueMany(size, url)).map(begin));

const throttle = async (id: string) =>
  expect(await stage.app.delivery_slots.begin(await newestJob(id))).toBeUndefined();

/** Lists the contents of the jobs of a delivery, oldest first. */
async function jobsOf(id: string): Promise<DueAttempt[]> {
  const rows = await stage.app.db.query<{ data: Record<string, unknown> }>(
    'select data from pgboss.job where singleton_key = $1 order by created_on',
    [id],
  );
  return rows.map(({ data }) => readDue(data));
}

async function newestJob(id: string): Promise<DueAttempt> {
  const job = (await jobsOf(id)).at(-1);
  if (!job) throw new Error(`${id} has no job`);
  return job;
}

async function begin(id: string): Promise<Begun> {
  const begun = await stage.app.delivery_slots.begin(await newestJob(id));
  if (!begun) throw new Error(`${id} has no slot`);
  return begun;
}

function ended(how: Partial<AttemptEnd> = {}): AttemptEnd {
  const now = new Date(stage.app.clock.now());
  const failed = { status: 500, error: null, answer: null, delivered: false, timed_out: false };
  return { started_at: now, ended_at: now, duration_ms: 1, ...failed, ...how };
}

const delivered = { status: 204, delivered: true };
const timed_out = { status: null, error: 'The receiver did not answer in time.', timed_out: true };

async function count(sql: string, values: readonly unknown[] = []): Promise<number> {
  const rows = await stage.app.db.query<{ n: number }>(`select count(*)::int as n from ${sql}`, values);
  return rows[0]?.n ?? 0;
}

const stateOf = async (id: string) =>
  (
    await stage.app.db.query<{ state: string; attempts: number }>(
      'select state, attempts from deliveries where id = $1',
      [id],
    )
  )[0];

/** Fills a host with as many slots as it has, or as it has for retries. */
async function fillHost(host: string, size = 64): Promise<void> {
  await stage.app.db.query(
    `insert into delivery_slots (account_id, delivery_id, endpoint, host, claim, taken_at)
       select $1, 'other_' || i, 'other_' || i, $2, 'x', now() from generate_series(1, $3) i`,
    [account_id, host, size],
  );
}

/** Ends one of the attempts that fill a host. */
const freeOne = async (host: string, i: number) => {
  await stage.app.db.query(`delete from delivery_slots where delivery_id = $1`, [`other_${i}`]);
  await stage.app.db.query('select hand_on($1, now())', [host]);
};

test('a manual attempt that is in flight when the scheduled retry is due is the only attempt, and it counts', async () => {
  const id = await queue('http://one.test/hand');
  await stage.app.delivery_slots.end(await begin(id), ended());
  const scheduled = await newestJob(id);
  expect(await resend(stage.app, { account_id, id })).toBe('sent');
  const manual = await begin(id);
  expect(await stage.app.delivery_slots.begin(scheduled)).toBeUndefined();
  expect(await stage.app.delivery_slots.end(manual, ended(delivered))).toMatchObject({ state: 'delivered' });
  expect(await stateOf(id)).toEqual({ state: 'delivered', attempts: 2 });
  expect(await count('delivery_slots')).toBe(0);
});

test('a job whose worker died after it throttled a delivery does not send beside the one that got the slot', async () => {
  const url = 'http://two.test/throttled';
  const [first] = await beginMany(4, url);
  const id = await queue(url);
  const job = await newestJob(id);
  expect(await stage.app.delivery_slots.begin(job)).toBeUndefined(); // throttled; the worker dies, the job stays
  if (first) await stage.app.delivery_slots.end(first, ended(delivered)); // the slot is handed on, with a new job
  expect(await stage.app.delivery_slots.begin(job)).toBeUndefined();
  const begun = await begin(id);
  expect(await stage.app.delivery_slots.begin(job)).toBeUndefined();
  expect(await stage.app.delivery_slots.end(begun, ended(delivered))).toMatchObject({ state: 'delivered' });
});

test('a job that moves to another worker takes over its own slot, and the first worker changes nothing any more', async () => {
  const id = await queue('http://three.test/over');
  const lost = await begin(id);
  const begun = await begin(id);
  expect(await count('delivery_slots')).toBe(1);
  expect(await stage.app.delivery_slots.end(lost, ended())).toMatchObject({ state: 'lost' });
  expect(await stage.app.delivery_slots.end(begun, ended(delivered))).toMatchObject({ state: 'delivered' });
  expect(await stateOf(id)).toEqual({ state: 'delivered', attempts: 1 });
});

test('several deliveries of an endpoint that end in one batch leave it slow or fast by the last of them', async () => {
  const url = 'http://four.test/batch';
  const firsts = await beginMany(4, url);
  const more = await queueMany(6, url);
  for (const id of more) await throttle(id);
  const outcomes = [timed_out, delivered, timed_out];
  await Promise.all(firsts.slice(0, 3).map((first, i) => stage.app.delivery_slots.end(first, ended(outcomes[i]))));
  expect(await count('slow_endpoints')).toBe(1);
  expect(await count('delivery_slots where endpoint = $1', [targetOf(account_id, url).endpoint])).toBe(1); // the fourth, still under way
});

test('an endpoint that becomes slow while its deliveries queue for the host gets one slot, not four', async () => {
  const url = 'http://five.test/slow';
  const { endpoint, host } = targetOf(account_id, url);
  const first = await begin(await queue(url));
  await fillHost(host);
  for (const id of await queueMany(3, url)) await throttle(id);
  await stage.app.delivery_slots.end(first, ended(timed_out));
  for (let i = 1; i <= 8; i++) await freeOne(host, i);
  expect(await count('delivery_slots where endpoint = $1', [endpoint])).toBe(1);
  expect(await count('throttled_deliveries where endpoint = $1', [endpoint])).toBe(2);
});

test('a first attempt does not wait behind a retry that is next for the only slot of a slow endpoint', async () => {
  const url = 'http://ten.test/retry';
  const { endpoint, host } = targetOf(account_id, url);
  const retry = await queue(url);
  await stage.app.delivery_slots.end(await begin(retry), ended(timed_out));
  await fillHost(host, 48);
  await throttle(retry);
  await begin(await queue(url));
  for (let i = 1; i <= 8; i++) await freeOne(host, i);
  expect(await count('delivery_slots where endpoint = $1', [endpoint])).toBe(1);
  expect(await count(`throttled_deliveries where delivery_id = $1 and queue_for = 'endpoint'`, [retry])).toBe(1);
});

test('an attempt whose slot was lost in a crash of the server is repeated at once', async () => {
  const { receiver, app } = stage;
  const id = await queue(`${receiver.url}/forgotten`);
  const due = await newestJob(id);
  const data = { ...due, delivery_id: id };
  const job = { id: 'x', queue: 'delivery.send', data, attempt: 0, signal: never };
  atFailpoint('delivery.begun', async () => {
    atFailpoint('delivery.begun');
    await app.db.query('delete from delivery_slots');
  });
  expect(await sendDelivery(app, job)).toEqual({ again_after_ms: 0 });
  expect(await sendDelivery(app, job)).toBe('done');
  expect(await stateOf(id)).toEqual({ state: 'delivered', attempts: 1 });
  expect(receiver.received).toHaveLength(2);
});

test('a fault of ours while sending is a failed attempt like any other and is logged, so that no delivery repeats forever', async () => {
  const id = await queue('http://nine.test/');
  const due = await newestJob(id);
  const job = { id: 'x', queue: 'delivery.send', data: { ...due, delivery_id: id }, attempt: 0, signal: never };
  const send = () => Promise.reject(new TypeError('nobody thought of this'));
  const guard = { ...stage.app.guard, send };
  expect(await sendDelivery({ ...stage.app, guard, addressRules: () => stage.app.addressRules() }, job)).toBe('done');
  expect(await stateOf(id)).toEqual({ state: 'waiting', attempts: 1 });
});

test('a delivery that an operator removed does not delay those that end with it', async () => {
  const both = await beginMany(2, 'http://six.test/gone');
  await stage.app.db.query('delete from deliveries where id = $1', [both[0]?.id]);
  const ends = both.map((begun) => stage.app.delivery_slots.end(begun, ended(delivered)));
  expect(await Promise.all(ends)).toMatchObject([{ state: 'lost' }, { state: 'delivered' }]);
  expect(await count('delivery_slots')).toBe(0);
});

test('the sweep waits for one host at a time, and a locked host does not stop the others', async () => {
  const { app } = stage;
  for (const host of ['aaa.test', 'zzz.test']) {
    await fillHost(host);
    await throttle(await queue(`http://${host}/`));
    await app.db.query('delete from delivery_slots'); // nobody hands these on
  }
  let rescued: Promise<number> | undefined;
  await app.db.tx(async (tx) => {
    await tx.query(`select lock_hosts(array['zzz.test'])`);
    rescued = rescueDeliveries(app);
    await until('the first host moved on', async () => (await count(`delivery_slots where host = 'aaa.test'`)) === 1);
    await begin(await queue('http://aaa.test/other'));
  });
  await Promise.resolve(rescued).catch(() => rescueDeliveries(app)); // on a slow machine it has given up the locked host
  expect(await count(`delivery_slots where host = 'zzz.test'`)).toBe(1);
  expect(await count('throttled_deliveries')).toBe(0);
});

test('old deliveries are removed, but not while they are being sent again', async () => {
  const { app, clock } = stage;
  const delivery = await queue('http://seven.test/old');
  const removed = await queue('http://seven.test/old');
  for (const id of [delivery, removed]) await app.delivery_slots.end(await begin(id), ended(timed_out));
  for (const id of [delivery, removed]) {
    await resend(app, { account_id, id });
    await app.delivery_slots.end(await begin(id), ended({ ...delivered, timed_out: true }));
  }
  clock.pass(93 * day_ms);
  let removal: Promise<number> | undefined;
  await app.db.tx(async (tx) => {
    await tx.query('select resend_delivery(now(), $1, $2)', [account_id, delivery]);
    removal = removeOldDeliveries(app);
    await until(
      'the removal waits',
      async () => (await count(`pg_locks where not granted and locktype = 'transactionid'`)) > 0,
    );
  });
  expect(await Promise.resolve(removal).catch(() => removeOldDeliveries(app))).toBe(1); // again, if the lock took too long
  expect(await stateOf(delivery)).toEqual({ state: 'waiting', attempts: 2 });
  expect(await stateOf(removed)).toBeUndefined();
  expect(await count('slow_endpoints')).toBe(0); // nor does anybody remember that it was slow
  clock.pass(-93 * day_ms);
});

test('a schedule that becomes shorter, longer or empty applies to waiting deliveries from their next attempt on', async () => {
  const { app } = stage;
  const configure = (delays: string) =>
    stage.test.configure(`version: 1\nnet: { allow: ["127.0.0.0/8"] }\nwebhooks: { retry_delays: [${delays}] }\n`);
  const id = await queue('http://eight.test/');
  const after = async () => {
    const failed = ended();
    const { state, next_at } = await app.delivery_slots.end(await begin(id), failed);
    return next_at ? (next_at.getTime() - failed.ended_at.getTime()) / 1_000 : state;
  };
  await configure('10s, 1m');
  expect(await after()).toBe(delay_ms / 1_000);
  await configure('1s, 2s, 3s, 4s');
  expect(await after()).toBe(2);
  expect(await after()).toBe(3);
  await configure('1s');
  expect(await after()).toBe('dropped');
  await configure('');
  const other = await queue('http://eight.test/');
  expect(await app.delivery_slots.end(await begin(other), ended())).toMatchObject({ state: 'dropped' });
});
