import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import sharp from 'sharp';
import { describe, expect, it, vi } from 'vitest';
import type { App } from '../../src/app.ts';
import { failpoints, type Failpoint } from '../../src/lib/failpoint.ts';
import { finish } from '../../src/tasks/finish.ts';
import { startWorker } from '../../src/worker.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { mediaModel, required_prompt } from '../helpers/catalog.ts';
import { scripted, startUpstream, type Behaviour, type Upstream } from '../helpers/upstream.ts';
import { depth } from '../helpers/depth.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');
const tasks_per_case = 4;
const at_once = 8;

const bothRoutes = (start: string) =>
  ['a', 'b'].map(
    (id) => `{ id: ${id}, provider: up, upstream_model: ${id}, timeout: { start: ${start}, total: 30s } }`,
  );

const yaml = (upstream: string) => `
version: 1
storage: { shared: true }
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [200ms, 1s, 2s, 4s, 8s] }
providers: { up: { adapter: scripted, base_url: "${upstream}", allow_private: true } }
models:${mediaModel({
  id: 'test/one',
  schema: required_prompt,
  routes: ['{ id: a, provider: up, upstream_model: a, poll: { max: 200ms }, timeout: { start: 2s, total: 30s } }'],
})}${mediaModel({ id: 'test/two', schema: required_prompt, routes: bothRoutes('2s') })}${mediaModel({
  id: 'test/patient',
  schema: required_prompt,
  routes: bothRoutes('25s'),
})}
`;

type Case = {
  service: TestApp;
  client: Client;
  upstream: Upstream;
  ids: string[];
  /** Webhooks by task, as they arrived. */
  received: string[];
};

/** The way in which a place is reached, and what must be true at last in addition to what always is. */
type Way = {
  /** The upstream's answer to each submit on route `a`; the default ends at the second poll. */
  upstream?: Behaviour;
  model?: 'test/two' | 'test/patient';
  webhooks?: boolean;
  /** Before the armed process starts. */
  before?(the: Case): Promise<void>;
  /** Brings the armed process there; it works on the tasks anyway. */
  act?(the: Case, url: string): Promise<unknown>;
  role?: 'api';
  /** After it, before the tasks are waited for. */
  mend?(the: Case): Promise<void>;
  after?(the: Case): Promise<void>;
};

/** Those of responses have a test of their own: test/lifecycle/background.test.ts. */
type TaskPoint = Exclude<Failpoint, `response.${string}` | `upload.${string}` | `batch.${string}`>;

const ways: Record<TaskPoint, Way> = {
  'task.created': {
    role: 'api',
    act: (the, url) => createLast(the, `${url}/v1/generate`),
  },
  'task.opened': { upstream: 'done' },
  'task.submitted': { upstream: 'done' },
  'task.refused': { upstream: 'refuse', model: 'test/two' },
  'task.routed': { upstream: 'refuse', model: 'test/two' },
  'task.claimed': { upstream: 'done', before: (the) => untilDead(startNode(the.service.app, 'task.submitted=kill')) },
  'task.accepted': {},
  'task.polled': {},
  'task.expired': { upstream: 'queue' },
  'task.dropped': { upstream: 'drop', model: 'test/patient' },
  'task.copying': {},
  'task.stored': {},
  'task.finishing': {},
  'task.finished': {},
  'task.canceling': {
    upstream: 'run forever',
    role: 'api',
    before: async (the) => {
      await startWorker(the.service.app);
      await untilRunning(the);
    },
    act: (the, url) => post(the, `${url}/v1/tasks/${the.ids[0]}/cancel`, {}),
    mend: cancelAll,
  },
  'task.abandoned': { upstream: 'run forever', act: endAll, after: expectStopped },
  'job.fetched': {},
  'job.settling': {},
  'job.settled': {},
  'file.written': {},
  'delivery.begun': { webhooks: true },
  'delivery.sent': { webhooks: true },
  'delivery.ended': { webhooks: true },
  'sweep.resending': { before: loseJobs },
  'sweep.ending': { before: makeOverdue },
  'sweep.removing': { before: (the) => growOld(the, '30 days'), mend: removeNow, after: expectNoFiles },
  'sweep.deleting': { before: (the) => growOld(the, '100 days'), mend: removeNow, after: expectGone },
};

/** Places at which a task can be lost, submitted twice or paid twice; `npm run test:nightly` takes every place, both ways. */
const usual_cases: readonly string[] = [
  'task.created kill',
  'task.submitted kill',
  'task.finishing throw',
  'delivery.sent kill',
];

describe.concurrent('a process that fails at', () => {
  const permits = makePermits(at_once);
  const isOfTasks = (point: Failpoint): point is TaskPoint => !/^(?:response|upload|batch)\./.test(point);
  const all = failpoints
    .filter(isOfTasks)
    .flatMap((point) => (['kill', 'throw'] as const).map((action) => ({ point, action })));
  const cases = all.filter(
    ({ point, action }) => depth(usual_cases, undefined)?.includes(`${point} ${action}`) ?? true,
  );

  it.each(cases)(
    '$point ($action) loses nothing, and the next one continues',
    async ({ point, action }) => {
      const release = await permits();
      try {
        await expectNothingLost(point, action, ways[point]);
      } finally {
        release();
      }
    },
    300_000,
  );
});

async function expectNothingLost(point: Failpoint, action: 'kill' | 'throw', way: Way): Promise<void> {
  const upstream = await startUpstream(await image);
  const receiver = await startReceiver();
  const service = await startTestApp({ yaml: yaml(upstream.url), adapters: { scripted }, worker: false });
  try {
    upstream.script('a', way.upstream ?? 'run');
    const the: Case = { service, upstream, client: await service.client(), ids: [], received: receiver.received };
    for (let i = 0; i < tasks_per_case; i++) {
      const body = {
        model: way.model ?? 'test/one',
        input: { prompt: `${i}` },
        ...(way.webhooks && { webhook_url: `${receiver.url}/${i}` }),
      };
      the.ids.push((await the.client.call('POST', '/v1/generate', body)).json.id);
    }
    await way.before?.(the);
    const node = startNode(service.app, `${point}=${action}`, way.role);
    await way.act?.(the, way.role === 'api' ? await node.url : '');
    if (action === 'kill') await untilDead(node);
    else await untilStumbled(node, point);
    if (!way.role || point === 'task.created') await startWorker(service.app);
    await way.mend?.(the);
    await expectAllWell(the);
    await way.after?.(the);
    if (way.webhooks) await expectDelivered(the);
    await expectExactBooks(service.app);
  } finally {
    await service.stop();
    await upstream.close();
    receiver.close();
  }
}

/** Every task final; a failed one because nobody knows whether the upstream took it; none submitted twice. */
async function expectAllWell({ service, upstream }: Case): Promise<void> {
  const unfinished = () => service.app.db.query('select id from tasks where completed_at is null');
  await vi.waitFor(async () => expect(await unfinished()).toEqual([]), { timeout: 120_000, interval: 200 });
  const submits = upstream.submits.map(({ route, task_id }) => `${route} ${task_id}`);
  expect(submits.toSorted()).toEqual([...new Set(submits)].toSorted());
  const failed = await service.app.db.query<{ error_message: string }>(
    `select t.error_message, a.state from tasks t left join attempts a on a.account_id = t.account_id and a.task_id = t.id
      where t.status = 'failed' and t.error_type not in ('canceled', 'timeout')
        and not exists (select from attempts x where x.task_id = t.id and x.state in ('ambiguous', 'not_started'))`,
  );
  expect(failed).toEqual([]);
}

type Node = { child: ChildProcessByStdio<null, Readable, Readable>; output: () => string; url: Promise<string> };

function startNode(app: App, failpoint: string, role: 'worker' | 'api' = 'worker'): Node {
  const child = spawn(process.execPath, [program], {
    env: childEnvironment(app, { role, failpoints: failpoint }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const url = new Promise<string>((resolve, reject) => {
    const listen = (chunk: Buffer) => {
      output += chunk.toString();
      const match = /running at (http:\/\/\S+)/.exec(output);
      if (match?.[1]) resolve(match[1]);
    };
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${output}`)));
    child.stdout.on('data', listen);
    child.stderr.on('data', listen);
  });
  url.catch(() => undefined); // most cases do not ask
  return { child, output: () => output, url };
}

async function untilDead({ child, output }: Node): Promise<void> {
  const patience = setTimeout(() => child.kill('SIGTERM'), 150_000);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  clearTimeout(patience);
  expect(child.signalCode, output()).toBe('SIGKILL');
}

async function untilStumbled({ child, output }: Node, point: Failpoint): Promise<void> {
  try {
    await vi.waitFor(() => expect(output()).toContain(`failpoint ${point}`), { timeout: 120_000, interval: 50 });
  } finally {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

/** The answer may be a 500, or none. */
const post = (the: Case, url: string, body: object) =>
  fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${the.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined);

/** Creates one more task. A service that is busy says 503 before it comes to the place: then once more. */
async function createLast(the: Case, url: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const response = await post(the, url, { model: 'test/one', input: { prompt: 'last' } });
    if (!response || response.status === 500) return;
    const answer = `${response.status} ${await response.text()}`;
    if (response.status !== 503 || tries === 20) throw new Error(`the create call was answered ${answer}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function untilRunning({ service }: Case): Promise<void> {
  const waiting = () => service.app.db.query(`select id from tasks where status <> 'running'`);
  await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 120_000, interval: 50 });
}

async function cancelAll({ client, ids }: Case): Promise<void> {
  for (const id of ids) await client.call('POST', `/v1/tasks/${id}/cancel`);
  for (const id of ids) {
    const { json } = await client.call('GET', `/v1/tasks/${id}`);
    expect(json).toMatchObject({ status: 'failed', error: { type: 'canceled' }, cost: { amount: '0.00' } });
  }
}

/** As `medley task fail` does, once the runs are under way. */
async function endAll(the: Case): Promise<void> {
  await untilRunning(the);
  for (const task_id of the.ids) {
    const ref = { account_id: the.client.account_id, task_id };
    const ending = { status: 'failed', type: 'timeout', message: 'ended', reason: 'ended' } as const;
    await finish(the.service.app, ref, { ...ending, counts: false, attempt: 'abandoned' });
  }
}

async function expectStopped({ service, ids }: Case): Promise<void> {
  const stopped = () => service.app.db.query(`select task_id from attempts where state = 'canceled'`);
  await vi.waitFor(async () => expect((await stopped()).length).toBe(ids.length), { timeout: 120_000, interval: 100 });
}

async function loseJobs({ service }: Case): Promise<void> {
  await service.app.db.query(`update tasks set created_at = created_at - interval '1 minute'`);
  await service.app.db.query(`delete from pgboss.job where name like 'task.%'`);
}

async function makeOverdue({ service }: Case): Promise<void> {
  await service.app.db.query(`update tasks set deadline_at = created_at - interval '1 minute'`);
  await service.app.db.query(`delete from pgboss.job where name like 'task.%'`);
}

/** All tasks succeed and get this old, and it is time to remove what is old. */
async function growOld(the: Case, age: string): Promise<void> {
  const node = startNode(the.service.app, 'task.claimed=kill'); // which nobody reaches
  await expectAllWell(the);
  node.child.kill('SIGTERM');
  await once(node.child, 'exit');
  await the.service.app.db.query(`update tasks set completed_at = completed_at - $1::interval`, [age]);
  await removeNow(the);
}

async function removeNow({ service }: Case): Promise<void> {
  await service.app.db.query(`update pgboss.job set start_after = now() where name = 'duty.tasks.removal'`);
}

async function expectNoFiles({ service, ids, client }: Case): Promise<void> {
  const removed = () => service.app.db.query('select id from tasks where files_removed_at is not null');
  await vi.waitFor(async () => expect((await removed()).length).toBe(ids.length), { timeout: 120_000, interval: 100 });
  for (const id of ids) expect(await service.app.storage.list(client.account_id, id)).toEqual([]);
}

/** The tasks go; the ledger stays, and is exact without them. */
async function expectGone({ service, ids, client }: Case): Promise<void> {
  const left = () => service.app.db.query('select id from tasks');
  await vi.waitFor(async () => expect(await left()).toEqual([]), { timeout: 120_000, interval: 100 });
  for (const id of ids) expect(await service.app.storage.list(client.account_id, id)).toEqual([]);
}

async function expectDelivered({ service, ids, received }: Case): Promise<void> {
  const waiting = () => service.app.db.query(`select id from deliveries where state = 'waiting'`);
  await vi.waitFor(async () => expect(await waiting()).toEqual([]), { timeout: 120_000, interval: 200 });
  expect([...new Set(received)].toSorted()).toEqual(ids.toSorted());
}

async function startReceiver(): Promise<{ url: string; received: string[]; close(): void }> {
  const received: string[] = [];
  const server = createServer((message, response) => {
    let text = '';
    message.on('data', (chunk: Buffer) => (text += chunk.toString()));
    message.on('end', () => {
      received.push((JSON.parse(text) as { id: string }).id);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    close: () => void server.close(),
  };
}

/** As many cases at a time as two cores bear: each has a process of its own. */
function makePermits(count: number): () => Promise<() => void> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async () => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    return () => {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    };
  };
}

const image = sharp({ create: { width: 64, height: 48, channels: 3, background: '#c33' } })
  .png()
  .toBuffer();
