import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { expect, test } from 'vitest';
import type { Queryable } from '../../src/db/database.ts';
import { sendDelivery } from '../../src/webhooks/send.ts';
import { makeRandom, type Random } from '../chaos/random.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { queueDelivery, until } from './setup.ts';

const seed = Number(process.env['ATTACK_SEED'] ?? 4);
const deliveries = 300;
const yaml = `
version: 1
net: { allow: ["127.0.0.0/8"] }
webhooks: { timeout: 500ms, retry_delays: [100ms, 200ms, 300ms, 400ms, 500ms] }
`;

/** A host whose paths answer at random, and that counts what it is being sent at once. */
type Host = {
  url: string;
  accepted: Set<string>;
  /** The most requests in flight at once: on the whole host, on any path, of any delivery. */
  most: { host: number; endpoint: number; delivery: number };
  stop(): Promise<void>;
};

async function startHost(address: string, random: Random): Promise<Host> {
  const accepted = new Set<string>();
  const most = { host: 0, endpoint: 0, delivery: 0 };
  const open = new Set<{ path: string; delivery: string }>();
  const server = createServer((request, response) => {
    const delivery = String(request.headers['x-service-delivery']);
    const path = request.url ?? '';
    const one = { path, delivery };
    open.add(one);
    response.once('close', () => open.delete(one));
    const all = [...open];
    most.host = Math.max(most.host, all.length);
    most.endpoint = Math.max(most.endpoint, all.filter((other) => other.path === path).length);
    most.delivery = Math.max(most.delivery, all.filter((other) => other.delivery === delivery).length);
    request.resume().once('end', () => answer(response, delivery));
  });
  const answer = (response: ServerResponse, delivery: string) => {
    const how = random.weighted({ good: 55, late: 15, broken: 12, cut: 10, silent: 8 });
    if (how === 'silent') return;
    if (how === 'cut') return void response.socket?.destroy();
    const send = () => {
      if (how !== 'broken') accepted.add(delivery);
      response.writeHead(how === 'broken' ? 500 : 204).end();
    };
    if (how === 'late') setTimeout(send, random.whole(20, 300));
    else send();
  };
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://${address}:${port}`, accepted, most, stop };
}

/** A node that works on deliveries only: without the net that would hide what gets lost. */
async function startNode(service: TestApp): Promise<TestApp> {
  const node = await service.beside({ yaml });
  for (const queue of ['delivery.send', 'delivery.retry'])
    node.app.engine.work(queue, { slots: 200, handler: (job) => sendDelivery(node.app, job) });
  // Starting sets it to 10 s. With 4 s, jobs of connections that died come back while this test still runs.
  await node.app.db.query(`update pgboss.queue set heartbeat_seconds = 4 where name like 'delivery.%'`);
  return node;
}

test('two nodes that stop, start and lose the database midway lose no delivery, exceed no limit and leave no slot taken', async () => {
  const random = makeRandom(seed);
  const service = await startTestApp({ worker: false, yaml });
  const hosts = [await startHost('127.0.0.31', random), await startHost('127.0.0.32', random)];
  const accounts = [await service.client(), await service.client()];
  const client = new pg.Client({ ...service.app.db.connection, application_name: 'attack' });
  await client.connect();
  const db: Queryable = {
    query: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows as Row[],
  };
  const count = async (what: string) => (await db.query<{ n: number }>(`select count(*)::int as n from ${what}`))[0]?.n;
  const nodes = [await startNode(service), await startNode(service)];

  const queueOne = async () => {
    const account_id = accounts[random.whole(0, 1)]?.account_id ?? '';
    // 48 endpoints of one host have more slots than the host; 4 of the other have fewer.
    const [host, paths] = random.chance(0.7) ? [hosts[0], 24] : [hosts[1], 2];
    const url = `${host?.url}/${account_id}/${random.whole(1, paths)}`;
    await queueDelivery({ db, clock: service.app.clock }, account_id, url);
  };
  const actions = {
    terminate: () =>
      db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name <> 'attack' and backend_type = 'client backend'`,
      ),
    restart: async () => {
      const i = random.whole(0, 1);
      await nodes[i]?.stop();
      nodes[i] = await startNode(service);
    },
  };
  const resendSome = async () => {
    const some = await db.query<{ account_id: string; id: string }>(
      'select account_id, id from deliveries order by hashtext(id || $1) limit 10',
      [random.next()],
    );
    for (const { account_id, id } of some) await db.query('select resend_delivery(now(), $1, $2)', [account_id, id]);
  };
  try {
    for (let i = 0; i < deliveries; i++) {
      await queueOne();
      if (i % 10 === 9) await resendSome();
      if (i % 60 === 59) await actions[random.weighted({ terminate: 1, restart: 1 })]();
    }
    const ended = async () =>
      (await count(`deliveries where state = 'waiting'`)) === 0 &&
      (await count(`pgboss.job where name like 'delivery.%' and state < 'completed'`)) === 0;
    await until('all deliveries have ended, and so have their jobs', ended);
    expect({ slots: await count('delivery_slots'), throttled: await count('throttled_deliveries') }).toEqual({
      slots: 0,
      throttled: 0,
    });
    const rows = await db.query<{ id: string; state: string; failures: number }>('select * from deliveries');
    const accepted = new Set(hosts.flatMap((host) => [...host.accepted]));
    expect(rows).toHaveLength(deliveries);
    expect(rows.filter(({ id, state }) => state === 'delivered' && !accepted.has(id))).toEqual([]);
    expect(rows.filter(({ state, failures }) => state === 'dropped' && failures < 6)).toEqual([]);
    for (const { most } of hosts) {
      expect(most.host).toBeLessThanOrEqual(64);
      expect(most.endpoint).toBeLessThanOrEqual(4);
      expect(most.delivery).toBe(1);
    }
    await expectExactBooks(service.app);
  } finally {
    await client.end();
    for (const part of [...nodes, service, ...hosts]) await part.stop();
  }
});
