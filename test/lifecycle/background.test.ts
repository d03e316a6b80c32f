import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test, type ExpectStatic } from 'vitest';
import { startWorker } from '../../src/worker.ts';
import { setStage, type Stage } from '../chat/setup.ts';
import { chunk, completionsStream } from '../chat/streams.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { expectExactBooks } from '../helpers/app.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');

function spawnWorker(stage: Stage, failpoints: string) {
  const child = spawn(process.execPath, [program], {
    env: childEnvironment(stage.test.app, { role: 'worker', failpoints }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const output of [child.stdout, child.stderr]) output.on('data', (part: Buffer) => (text += part.toString()));
  return { child, text: () => text };
}

/** A worker that kills itself at a place. */
async function dieAt(stage: Stage, failpoint: string): Promise<void> {
  const { child, text } = spawnWorker(stage, failpoint);
  const patience = setTimeout(() => child.kill('SIGTERM'), 150_000);
  await once(child, 'exit');
  clearTimeout(patience);
  expect(child.signalCode, text()).toBe('SIGKILL');
}

const done = 'select status, ended from background_responses where done_at is not null';

test.concurrent.for([
  ['job.fetched=kill', 'completed', 1],
  ['response.claimed=kill', 'completed', 1],
  ['response.sent=kill', 'failed', 0],
  ['response.ended=kill', 'completed', 1],
] as const)(
  'a worker that dies at %s leaves a response that is %s, and exact books',
  async ([failpoint, status, charged], context) => {
    const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
    try {
      await expectNothingLost(stage, failpoint, { status, charged }, context.expect.poll);
    } finally {
      await stage.stop();
    }
  },
);

async function expectNothingLost(
  stage: Stage,
  failpoint: string,
  { status, charged }: { status: string; charged: number },
  poll: ExpectStatic['poll'], // of its own test: others run beside it
): Promise<void> {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hello', ' there'], [1_000, 500]) });
  const { text } = await stage.client.call('POST', '/v1/responses', {
    model: 'acme/oai',
    input: 'Hi',
    background: true,
  });
  const { id } = JSON.parse(text) as { id: string };
  await dieAt(stage, failpoint);
  await startWorker(stage.test.app);
  const { db } = stage.test.app;
  await poll(() => db.query(done), { timeout: 120_000, interval: 200 }).toHaveLength(1);
  const answer = await stage.client.call('GET', `/v1/responses/${id}`);
  expect(answer.json.status).toBe(status);
  expect(answer.json.error?.code).toBe(charged ? undefined : 'server_error');
  const entries = await db.query(
    "select type, revenue from ledger_entries where event in ('close', 'late') and ref = $1",
    [id.replace('resp_', '')],
  );
  expect(entries).toEqual([charged ? { type: 'settle', revenue: 7_000n } : { type: 'release', revenue: 0n }]);
  const records = () => db.query('select cost from chat_calls'); // written behind the end
  await poll(records).toEqual(charged ? [{ cost: 7_000n }] : []);
  expect(stage.upstream.requests).toHaveLength(charged);
  await expectExactBooks(stage.test.app);
}

test.concurrent('a worker that dies when a fallback was asked leaves the cost of that model as unknown', async (context) => {
  const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
  try {
    stage.upstream.script('gpt-x', { status: 401, json: { error: { message: 'bad key' } } });
    const call = { model: 'acme/oai', models: ['acme/ant'], input: 'Hi' };
    await stage.client.call('POST', '/v1/responses', { ...call, models: [] }); // opens its circuit
    const { text } = await stage.client.call('POST', '/v1/responses', { ...call, background: true });
    await dieAt(stage, 'response.sent=kill');
    await startWorker(stage.test.app);
    const { db } = stage.test.app;
    await context.expect.poll(() => db.query(done), { timeout: 120_000, interval: 200 }).toHaveLength(1);
    const entries = await db.query('select type, model, route from ledger_entries where ref = $1 order by number', [
      JSON.parse(text).id.replace('resp_', ''),
    ]);
    expect(entries).toEqual([
      { type: 'hold', model: 'acme/oai', route: null },
      { type: 'release', model: 'acme/ant', route: 'acme/ant#ant' },
    ]);
    await expectExactBooks(stage.test.app);
  } finally {
    await stage.stop();
  }
});

test('one that waits is cancelled at no cost, and nobody begins it', async () => {
  const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
  onTestFinished(() => stage.stop());
  const { text } = await stage.client.call('POST', '/v1/responses', {
    model: 'acme/oai',
    input: 'Hi',
    background: true,
  });
  const { id } = JSON.parse(text) as { id: string };
  const held = (await stage.client.call('GET', '/v1/balance')).json.held;
  expect(Number(held.exact)).toBeGreaterThan(0);
  const cancelled = await Promise.all([
    stage.client.call('POST', `/v1/responses/${id}/cancel`),
    stage.client.call('POST', `/v1/responses/${id}/cancel`),
  ]);
  expect(cancelled.map(({ status, json }) => [status, json.status])).toEqual([
    [200, 'cancelled'],
    [200, 'cancelled'],
  ]);
  expect((await stage.client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  await startWorker(stage.test.app);
  const jobs = "select 1 from pgboss.job where name = 'response.run' and state < 'completed'";
  await expect.poll(() => stage.test.app.db.query(jobs)).toEqual([]);
  expect(stage.upstream.requests).toEqual([]);
  await expectExactBooks(stage.test.app);
});

test('a worker that is killed in the middle of a stream leaves what had come in the response, at no cost', async () => {
  const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
  const words = 'These words have come. ';
  stage.upstream.script('gpt-x', { stream: [chunk({ content: words })], then: 'hang' });
  const worker = spawnWorker(stage, '');
  try {
    const call = { model: 'acme/oai', input: 'Hi', background: true, stream: true };
    const following = stage.client.call('POST', '/v1/responses', call);
    const { db } = stage.test.app;
    const written = 'select max(last_event) as last from background_contents';
    await expect
      .poll(async () => (await db.query<{ last: number }>(written))[0]?.last ?? 0, { timeout: 150_000 })
      .toBeGreaterThan(2);
    worker.child.kill('SIGKILL');
    await startWorker(stage.test.app);
    const { text } = await following;
    const id = /resp_\w+/.exec(text)?.[0] ?? '';
    const { json } = await stage.client.call('GET', `/v1/responses/${id}`);
    expect(json).toMatchObject({
      status: 'failed',
      error: { code: 'server_error' },
      output: [{ type: 'message', status: 'incomplete', content: [{ type: 'output_text', text: words }] }],
      usage: null,
    });
    await expect.poll(() => db.query(done)).toHaveLength(1);
    await expect.poll(async () => (await stage.client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
    await expectExactBooks(stage.test.app);
  } finally {
    worker.child.kill('SIGKILL');
    await stage.stop();
  }
});
