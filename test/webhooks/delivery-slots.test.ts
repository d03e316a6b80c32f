import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startWorker } from '../../src/worker.ts';
import type { DeliveryAttempt } from '../../src/webhooks/delivery.ts';
import { rescueDeliveries } from '../../src/webhooks/rescue.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import {
  attemptsOf,
  deliveryOf,
  finishTask,
  pass,
  patient_yaml,
  queueDelivery,
  setStage,
  until,
  yaml,
  type Stage,
} from './setup.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ yaml: patient_yaml });
});
afterEach(() => expectExactBooks(stage.app));
afterAll(() => stage.stop());

const finishTasks = (client: Client, count: number, url: (i: number) => string) =>
  Promise.all(Array.from({ length: count }, (_, i) => finishTask(client, url(i))));

/** A receiver under a host of its own, so that tests do not share its 64 slots. */
async function withReceiver(last: number, work: (receiver: Receiver) => Promise<void>): Promise<void> {
  const receiver = await startReceiver(`127.0.0.${last}`);
  try {
    await work(receiver);
  } finally {
    await receiver.stop();
  }
}

async function throttled(): Promise<number> {
  const rows = await stage.app.db.query<{ n: number }>('select count(*)::int as n from throttled_deliveries');
  return rows[0]?.n ?? 0;
}

test('8 hanging deliveries to one host do not delay a ninth to another path, and 4 of a URL are in flight, whatever its query', () =>
  withReceiver(2, async (receiver) => {
    receiver.answer('/hang', 'hang');
    await finishTasks(stage.client, 8, (i) => `${receiver.url}/hang?task=${i}`);
    await until('four are in flight', async () => receiver.open('/hang') === 4 && (await throttled()) === 4);
    await finishTask(stage.client, `${receiver.url}/other`);
    await receiver.nth('/other', 1);
    expect(receiver.open('/hang')).toBe(4); // none of them has ended before
    expect(receiver.most('/hang')).toBe(4);
    receiver.answer('/hang', 204);
    receiver.release('/hang', 204);
    await receiver.nth('/hang', 8);
    expect(receiver.most('/hang')).toBe(4);
    await until('all slots are free', async () => (await slotsTaken()) === 0);
  }));

async function slotsTaken(): Promise<number> {
  const rows = await stage.app.db.query<{ n: number }>('select count(*)::int as n from delivery_slots');
  return rows[0]?.n ?? 0;
}

test('two accounts with the same URL have 4 slots each', () =>
  withReceiver(3, async (receiver) => {
    receiver.answer('/shared', 'hang');
    const other = await stage.test.client();
    await finishTasks(stage.client, 6, () => `${receiver.url}/shared`);
    await finishTasks(other, 6, () => `${receiver.url}/shared`);
    await until('eight are in flight', async () => receiver.open('/shared') === 8 && (await throttled()) === 4);
    receiver.answer('/shared', 204);
    receiver.release('/shared', 204);
    await receiver.nth('/shared', 12);
    expect(receiver.most('/shared')).toBe(8);
  }));

test('a host has 64 slots, and an account with one delivery does not wait behind one with a hundred', () =>
  withReceiver(4, async (receiver) => {
    const paths = Array.from({ length: 100 }, (_, i) => `/many/${i}`);
    for (const path of paths) receiver.answer(path, 'hang');
    await finishTasks(stage.client, 100, (i) => `${receiver.url}${paths[i]}`);
    await until('64 are in flight', async () => receiver.open() === 64 && (await throttled()) === 36);
    const other = await stage.test.client();
    await finishTask(other, `${receiver.url}/small`);
    await until('the other queues', async () => (await throttled()) === 37);
    const [first] = receiver.received;
    receiver.release(first?.path ?? '', 204);
    await receiver.nth('/small', 1);
    for (const path of paths) receiver.answer(path, 204);
    for (const path of paths) receiver.release(path, 204);
    await until('all came', () => receiver.received.length === 101);
    expect(receiver.most()).toBe(64);
  }));

test('a URL has one slot after a timeout until an attempt there is answered again', async () => {
  await stage.test.configure(`${yaml}webhooks: { timeout: 400ms }\n`);
  await withReceiver(5, async (receiver) => {
    receiver.answer('/slow', 'hang');
    const id = await finishTask(stage.client, `${receiver.url}/slow`);
    const attempt = await firstAttempt(id);
    expect(attempt).toMatchObject({ status: null, answer: null });
    expect(attempt?.error).toMatch(/time/i);
    await until('the attempt has let go', () => receiver.open('/slow') === 0);
    for (const one of await finishTasks(stage.client, 3, () => `${receiver.url}/slow`)) await firstAttempt(one); // in turns
    expect(receiver.most('/slow')).toBe(1);
    await stage.test.configure(patient_yaml); // a busy machine takes longer than 400 ms to answer
    receiver.answer('/slow', 204);
    expect(await firstAttempt(await finishTask(stage.client, `${receiver.url}/slow`))).toMatchObject({ status: 204 });
    await until('the last one is written down', async () => (await slotsTaken()) === 0);
    receiver.answer('/slow', 'hang');
    await finishTasks(stage.client, 4, () => `${receiver.url}/slow`);
    await until('four are in flight again', () => receiver.open('/slow') === 4);
    receiver.answer('/slow', 204);
    receiver.release('/slow', 204);
    await until('all slots are free', async () => (await slotsTaken()) === 0);
  });
});

/** The first attempt of a task's delivery, as soon as it has ended. */
async function firstAttempt(task_id: string): Promise<DeliveryAttempt | undefined> {
  return (await attemptsOf(stage.app, await deliveryOf(stage.app, stage.client, await finalOf(task_id)), 1))[0];
}

async function finalOf(task_id: string): Promise<string> {
  await until('the task is final', async () => {
    const { json } = await stage.client.call('GET', `/v1/tasks/${task_id}`);
    return json.completed_at !== null;
  });
  return task_id;
}

test('retries leave slots for first attempts and come after them', () =>
  withReceiver(6, async (receiver) => {
    receiver.answer('/mixed', 500);
    const ids = await finishTasks(stage.client, 6, () => `${receiver.url}/mixed`);
    for (const id of ids) await firstAttempt(id);
    receiver.answer('/mixed', 'hang');
    await pass(stage, 10_000);
    await until('three retries are in flight', () => receiver.open('/mixed') === 3);
    expect(receiver.most('/mixed')).toBeLessThanOrEqual(4);
    await finishTask(stage.client, `${receiver.url}/mixed`);
    await until('a first attempt is beside them', () => receiver.open('/mixed') === 4);
    receiver.answer('/mixed', 204);
    receiver.release('/mixed', 204);
    await until('all are through', async () => (await slotsTaken()) === 0 && (await throttled()) === 0);
  }));

test('two nodes keep the limits together', () =>
  withReceiver(7, async (receiver) => {
    const second = await stage.test.beside({ worker: false, yaml: patient_yaml });
    try {
      await startWorker(second.app);
      receiver.answer('/both', 'hang');
      await finishTasks(stage.client, 40, () => `${receiver.url}/both`);
      await until('four are in flight', async () => receiver.open('/both') === 4 && (await throttled()) === 36);
      receiver.answer('/both', 204);
      receiver.release('/both', 204);
      await receiver.nth('/both', 40);
      expect(receiver.most('/both')).toBe(4);
      await until('all are written down', async () => (await slotsTaken()) === 0);
      expect(receiver.received).toHaveLength(40);
    } finally {
      await second.stop();
    }
  }));

test('200 receivers that begin to hang and 300 deliveries for a dead one do not delay a healthy one', () =>
  withReceiver(8, async (receiver) => {
    const { client, app } = stage;
    const hanging = await Promise.all(Array.from({ length: 25 }, (_, i) => startReceiver(`127.0.1.${i + 1}`)));
    // They hang for five minutes: on a busy machine ten seconds pass without any delay by others.
    try {
      for (const one of hanging) for (let i = 0; i < 8; i++) one.answer(`/${i}`, 'hang');
      const paths = hanging.flatMap(({ url }) => Array.from({ length: 8 }, (_, i) => `${url}/${i}`));
      const four = [...paths, ...paths, ...paths, ...paths];
      for (let at = 0; at < four.length; at += 25)
        // no more than have a connection in time on a busy machine
        await Promise.all(four.slice(at, at + 25).map((url) => queueDelivery(app, client.account_id, url)));
      await until('all hang', () => hanging.reduce((sum, one) => sum + one.open(), 0) === 800);
      await finishTasks(client, 300, () => `http://127.0.0.9:9998/dead`); // refused: fails at once
      const ids = await finishTasks(client, 20, () => `${receiver.url}/healthy`);
      await receiver.nth('/healthy', 20);
      const rows = await app.db.query<{ ms: number }>(
        `select max(extract(epoch from a.started_at - d.created_at) * 1000)::float8 as ms
           from deliveries d join delivery_attempts a on a.account_id = d.account_id and a.delivery_id = d.id
          where d.task_id = any ($1)`,
        [ids],
      );
      expect(rows[0]?.ms).toBeLessThan(150_000); // behind those that hang it would be 300 s; 18 s were seen on a busy machine
    } finally {
      for (const one of hanging) await one.stop();
    }
    await until('all slots are free', async () => (await slotsTaken()) === 0);
  }));

test('jobs, slots and queues that an operator deletes are restored', () =>
  withReceiver(9, async (receiver) => {
    const { app, client, clock } = stage;
    receiver.answer('/torn', 'hang');
    await finishTasks(client, 6, () => `${receiver.url}/torn`);
    await until('two are throttled', async () => (await throttled()) === 2);
    await app.db.query('delete from throttled_deliveries');
    receiver.answer('/torn', 204);
    receiver.release('/torn', 204);
    await until('four are through', async () => (await slotsTaken()) === 0);
    clock.pass(10_000);
    const torn = async () => {
      await rescueDeliveries(app);
      return app.db.query(
        `select id from deliveries where url = $1 and state = 'waiting' and id not in (select key from engine_live_keys())`,
        [`${receiver.url}/torn`],
      );
    };
    await expect.poll(torn).toEqual([]); // a job that has just throttled its delivery may not have ended yet
    await receiver.nth('/torn', 6);
    await until('all are through', async () => (await slotsTaken()) === 0);
  }));
