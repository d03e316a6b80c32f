import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.ts';
import type { Outcome } from '../../src/queue/queue.ts';
import { NotStarted, type RunState } from '../../src/providers/provider.ts';
import { makeFinisher } from '../../src/tasks/finish.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { makePuppet } from '../helpers/puppet.ts';

const yaml = `
version: 1
${limits()}
providers: { once: { adapter: once } }
models:${mediaModel({
  id: 'test/once',
  schema: optional_prompt,
  routes: ['{ id: a, provider: once, upstream_model: a }', '{ id: b, provider: once, upstream_model: b }'],
})}
`;

/** The statement of this number loses its connection: before it is sent, or before its answer is read. */
function losing(app: App, number: number, at: 'before' | 'after'): { app: App; statements: () => number } {
  let sent = 0;
  const lost = () => Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  const query = async <T>(text: string, values?: readonly unknown[]) => {
    sent += 1;
    const is_lost = sent === number;
    if (is_lost && at === 'before') throw lost();
    const rows = await app.db.query<T>(text, values);
    if (is_lost) throw lost();
    return rows;
  };
  const db = { ...app.db, query };
  return { app: { ...app, db, finisher: makeFinisher(db) }, statements: () => sent };
}

/** As the engine does: a job that throws is begun again, one that says `again` too. */
async function work(run: () => Promise<Outcome>): Promise<void> {
  for (let tries = 0; tries < 5; tries++) {
    if ((await run().catch(() => 'thrown')) === 'done') return;
  }
}

describe('losing the database connection at any statement', () => {
  const once = makePuppet();
  let service: TestApp;
  let client: Client;
  let image: Buffer;

  beforeAll(async () => {
    image = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#c33' } })
      .png()
      .toBuffer();
    service = await startTestApp({ yaml, worker: false, adapters: { once: once.adapter } });
    client = await service.client();
    void answerAll();
  });
  afterAll(() => service.stop());
  afterEach(() => expectExactBooks(service.app));

  let script: (verb: string, model: string) => RunState | 'refuse' = () => 'refuse';

  async function answerAll(): Promise<void> {
    for (;;) {
      const call = await once.next();
      const state = script(call.verb, call.model);
      if (state === 'refuse') call.fail(new NotStarted('refused', 'no', { simulated: true }));
      else call.answer(state);
    }
  }
  const done = (): RunState => ({ phase: 'done', files: [{ bytes: image }] });

  const ways: [string, typeof script, submits: number][] = [
    ['an upstream that answers at once', () => done(), 1],
    [
      'a run that is polled',
      (verb) => (verb === 'poll' ? done() : { phase: 'running', ref: 'r', poll_after_ms: 50 }),
      1,
    ],
    ['a first route that refuses', (_verb, model) => (model === 'a' ? 'refuse' : done()), 2],
  ];

  it.each(ways)(
    'leaves a task that is submitted once, succeeds and is charged, with %s',
    async (_name, expected, submits) => {
      script = expected;
      for (const at of ['before', 'after'] as const) {
        for (let number = 1, statements = 1; number <= statements; number++) {
          const { json } = await client.call('POST', '/v1/generate', { model: 'test/once', input: {} });
          const ref: TaskRef = { account_id: client.account_id, task_id: json.id };
          const lossy = losing(service.app, number, at);
          const job = { id: 'x', queue: 'x', data: ref, attempt: 0, signal: new AbortController().signal };
          await work(() => startTask(lossy.app, job));
          await work(() => pollTask(lossy.app, job));
          const task = await loadTask(service.app.db, ref);
          const came_out = { status: task?.status, cost: task?.cost, submits: once.count('start', json.id) };
          expect(came_out, `statement ${number}, ${at}`).toEqual({ status: 'succeeded', cost: 30_000n, submits });
          statements = Math.max(statements, lossy.statements());
        }
      }
    },
  );
});
