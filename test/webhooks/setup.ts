import { recordText } from '../../src/db/record.ts';
import type { App } from '../../src/app.ts';
import type { Queryable } from '../../src/db/database.ts';
import {
  deliveryOfTask,
  listDeliveryAttempts,
  targetOf,
  type Delivery,
  type DeliveryAttempt,
} from '../../src/webhooks/delivery.ts';
import { limits } from '../helpers/catalog.ts';
import { testClock, type TestClock } from '../helpers/clock.ts';
import { startTestApp, type Client, type TestApp, type TestAppOptions } from '../helpers/app.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

/** No limit of tasks per minute, and receivers on loopback. */
export const yaml = `
version: 1
${limits({ failed_per_24h: 100_000 })}
net: { allow: ["127.0.0.0/8"] }
`;

/** The same where attempts may take minutes: those that hang do so until a test ends them, however slow the machine is. */
export const patient_yaml = `${yaml}webhooks: { timeout: 5m }\n`;

export type Stage = {
  test: TestApp;
  app: App;
  client: Client;
  receiver: Receiver;
  clock: TestClock;
  stop(): Promise<void>;
};

/** The service with a receiver on loopback and a clock that a test moves. */
export async function setStage(options: TestAppOptions = {}): Promise<Stage> {
  const clock = testClock();
  const test = await startTestApp({ yaml, clock, ...options });
  const receiver = await startReceiver();
  const stop = async () => {
    await test.stop();
    await receiver.stop();
  };
  return { test, app: test.app, client: await test.client(), receiver, clock, stop };
}

/**
 * Creates a task whose run fails at once: the quickest way to a final task. Answers its id. A machine that has no time for
 * many at once says so, and is asked again.
 */
export async function finishTask(client: Client, webhook_url: string): Promise<string> {
  const input = { prompt: '[[fail]] x', width: 64, height: 64 };
  for (;;) {
    const { status, json } = await client.call('POST', '/v1/generate', { model: 'sandbox/image', input, webhook_url });
    if (status === 202) return json.id;
    if (status !== 503) throw new Error(`${status} ${JSON.stringify(json)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

let queued = 0;

/** A delivery of no task, written with its first job as the call that ends a task does. Answers its id. */
export async function queueDelivery(
  { db, clock }: Pick<App, 'clock'> & { db: Queryable },
  account_id: string,
  url: string,
): Promise<string> {
  const id = `dlv_${++queued}`;
  const { endpoint, host } = targetOf(account_id, url);
  const delivery = { account_id, id, event: 'task.failed', url, body: '{}', lane: endpoint, host };
  await db.query('select add_delivery($1, $2)', [new Date(clock.now()), recordText(delivery)]);
  return id;
}

export async function deliveryOf(app: App, client: Client, task_id: string): Promise<Delivery> {
  const delivery = await deliveryOfTask(app.db, { account_id: client.account_id, task_id });
  if (!delivery) throw new Error(`${task_id} has no delivery`);
  return delivery;
}

/** Waits until it has ended as many attempts as that. */
export async function attemptsOf(app: App, delivery: Delivery, count: number): Promise<DeliveryAttempt[]> {
  for (;;) {
    const attempts = await listDeliveryAttempts(app.db, delivery);
    if (attempts.length >= count) return attempts;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

type Clocks = Pick<Stage, 'app' | 'clock'>;

const moved = new WeakMap<App, number>();
const standing = new WeakSet<App>();

/** Lets the clocks of the service and of its database move ahead by as much. */
export async function pass({ app, clock }: Clocks, duration_ms: number): Promise<void> {
  moved.set(app, (moved.get(app) ?? 0) + duration_ms);
  clock.pass(duration_ms);
  await setDatabaseClock({ app, clock });
  app.engine.wake('delivery.send');
  app.engine.wake('delivery.retry');
}

/** Does work while both clocks move by `pass` alone: what is not due does not become so on a slow machine. */
export async function whileClocksStand(stage: Clocks, work: () => Promise<void>): Promise<void> {
  const { app, clock } = stage;
  const now = () => Date.now() + (moved.get(app) ?? 0);
  clock.stop(now());
  standing.add(app);
  await setDatabaseClock(stage);
  try {
    await work();
  } finally {
    clock.run(now());
    standing.delete(app);
    await setDatabaseClock(stage);
  }
}

async function setDatabaseClock({ app, clock }: Clocks): Promise<void> {
  const now = standing.has(app)
    ? `timestamptz '${new Date(clock.now()).toISOString()}'`
    : `clock_timestamp() + interval '${moved.get(app) ?? 0} ms'`;
  await app.db.query(
    `create or replace function pgboss.job_now() returns timestamptz language sql stable as $$ select ${now} $$`,
  );
}

/** Waits until `condition` is true; says what it waited for when it takes more than two minutes. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const give_up_at_ms = Date.now() + 120_000;
  while (!(await condition())) {
    if (Date.now() > give_up_at_ms) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
