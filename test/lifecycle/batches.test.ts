import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import OpenAI from 'openai-7';
import { test, type ExpectStatic } from 'vitest';
import { runBatch } from '../../src/batches/run.ts';
import type { Db, Patience } from '../../src/db/database.ts';
import { startWorker } from '../../src/worker.ts';
import { completion, setStage, type Stage } from '../chat/setup.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { expectExactBooks } from '../helpers/app.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');

/** A worker in a process of its own. `kill_at`: the failpoint at which it is killed, and which time there. */
function startChild({ test: { app } }: Stage, kill_at?: string): ChildProcess {
  return spawn(process.execPath, [program], {
    env: childEnvironment(app, { role: 'worker', ...(kill_at !== undefined && { kill_at }) }),
    stdio: 'ignore',
  });
}

const usual_count = 6;

/** Time in which a worker that comes back writes what it has. */
const thawing_ms = 3_000;

const slow = { timeout: 150_000 };

async function createBatch({ test: { url, app }, client }: Stage, count = usual_count) {
  const sdk = new OpenAI({ apiKey: client.key, baseURL: `${url}/v1`, maxRetries: 0 });
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      custom_id: `line ${index}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'acme/oai', messages: [{ role: 'user', content: `Hello ${index}` }] },
    }),
  );
  const file = await sdk.files.create({ file: new File([lines.join('\n')], 'a.jsonl'), purpose: 'batch' });
  const batch = await sdk.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  return { sdk, id: batch.id, db: app.db };
}

/** Each line is in the output once, and is charged once. */
async function expectAllOnce(
  expect: ExpectStatic,
  stage: Stage,
  sdk: OpenAI,
  id: string,
  count = usual_count,
): Promise<void> {
  const { app } = stage.test;
  const status = async () => (await sdk.batches.retrieve(id)).status;
  await expect.poll(status, { timeout: 90_000, interval: 200 }).toBe('completed');
  const done = await sdk.batches.retrieve(id);
  expect([done.request_counts, done.error_file_id]).toEqual([{ total: count, completed: count, failed: 0 }, null]);
  const output = (await (await sdk.files.content(done.output_file_id ?? '')).text()).trimEnd().split('\n');
  const answers = output.map((line) => JSON.parse(line) as { custom_id: string; response: { request_id: string } });
  expect(answers.map(({ custom_id }) => custom_id)).toEqual(Array.from({ length: count }, (_, n) => `line ${n}`));
  const charges = answers.map(({ response }) => ({ ref: response.request_id, revenue: 70n })).toSorted(byRef);
  const charged = () =>
    app.db.query<{ ref: string; revenue: bigint }>(
      "select ref, revenue from ledger_entries where type = 'settle' and event in ('close', 'late') order by ref",
    );
  await expect.poll(charged).toEqual(charges);
  // Records are written behind the ends of calls.
  const records = () => app.db.query<{ id: string }>('select id from chat_calls where status = 200 order by id');
  await expect.poll(records).toEqual(charges.map(({ ref }) => ({ id: ref })));
  const files = await app.db.query("select id from files where purpose = 'batch_output'");
  expect(files).toEqual([{ id: done.output_file_id }]);
  await expectExactBooks(app);
}

function byRef(a: { ref: string }, b: { ref: string }): number {
  return a.ref < b.ref ? -1 : 1;
}

/** The first four calls at once ask the database for their holds; these are answered out of the lease that came with them. */
const leased_count = 16;

test.concurrent.for<[stage: string, lines: number]>([
  ['batch.sent 1', usual_count],
  ['batch.answered 1', usual_count],
  ['batch.answered 10', leased_count], // its hold is in the memory of the worker alone
  ['batch.filed 1', usual_count],
  ['upload.stored 1', usual_count],
])(
  'a worker that is killed at %s, in a batch of %i lines, loses none and doubles none',
  slow,
  async ([kill_at, lines], { expect }) => {
    const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
    try {
      stage.upstream.script('gpt-x', { json: completion('Hi') });
      const { sdk, id } = await createBatch(stage, lines);
      const child = startChild(stage, kill_at);
      await once(child, 'exit');
      expect(child.signalCode).toBe('SIGKILL');
      await startWorker(stage.test.app);
      await expectAllOnce(expect, stage, sdk, id, lines);
    } finally {
      await stage.stop();
    }
  },
);

test.concurrent(
  'a worker that is stopped puts its lines back, and nobody pays for what it let go',
  slow,
  async ({ expect }) => {
    const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
    try {
      stage.upstream.script('gpt-x', 'hang');
      const { sdk, id, db } = await createBatch(stage);
      const child = startChild(stage);
      await expect.poll(() => stage.upstream.open(), { timeout: 120_000, interval: 50 }).toBe(4);
      child.kill('SIGTERM');
      await once(child, 'exit');
      expect(child.exitCode).toBe(0);
      const open = await db.query('select number from batch_lines where state = $1', ['waiting']);
      expect(open).toHaveLength(usual_count);
      stage.upstream.script('gpt-x', { json: completion('Hi') });
      await startWorker(stage.test.app);
      await expectAllOnce(expect, stage, sdk, id);
    } finally {
      await stage.stop();
    }
  },
);

test.concurrent(
  'a worker that freezes and comes back changes nothing of lines that another one has made',
  slow,
  async ({ expect }) => {
    const stage = await setStage({ worker: false, more: 'storage: { shared: true }\n' });
    const { promise: after, resolve } = Promise.withResolvers<void>();
    let child: ChildProcess | undefined;
    try {
      stage.upstream.script('gpt-x', { json: completion('Hi'), after });
      const { sdk, id } = await createBatch(stage);
      child = startChild(stage);
      await expect.poll(() => stage.upstream.open(), { timeout: 120_000, interval: 50 }).toBe(4);
      child.kill('SIGSTOP');
      stage.upstream.script('gpt-x', { json: completion('Hi') });
      await startWorker(stage.test.app);
      const status = async () => (await sdk.batches.retrieve(id)).status;
      await expect.poll(status, { timeout: 90_000, interval: 200 }).toBe('completed');
      resolve(); // the answers of the frozen one
      child.kill('SIGCONT');
      const exited = once(child, 'exit');
      await new Promise((done) => setTimeout(done, thawing_ms));
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
      await expectAllOnce(expect, stage, sdk, id);
    } finally {
      child?.kill('SIGKILL');
      await stage.stop();
    }
  },
);

/** A database that stands still before the first statement with `text` until `thawed`. `has_input`: it has the input file. */
function freezingAt(db: Db, text: string, { has_input }: { has_input: boolean }) {
  const { promise: frozen, resolve: freeze } = Promise.withResolvers<void>();
  const { promise: thawed, resolve: thaw } = Promise.withResolvers<void>();
  const query = async <T>(statement: string, values?: readonly unknown[], patience?: Patience): Promise<T[]> => {
    if (!has_input && statement.includes('from files')) return [];
    if (statement.includes(text)) {
      freeze();
      await thawed;
    }
    return db.query<T>(statement, values, patience);
  };
  return { db: { ...db, query }, frozen, thaw };
}

test.concurrent.for([
  { at: 'delete from batch_lines', has_input: true },
  { at: 'insert into batch_lines', has_input: true },
  { at: "status = 'failed'", has_input: false },
])(
  'a worker that freezes at $at while it reads the input changes no line that another one calls',
  slow,
  async ({ at, has_input }, { expect }) => {
    const stage = await setStage({ worker: false });
    const { promise: after, resolve: answer } = Promise.withResolvers<void>();
    try {
      const at_once = { json: completion('Hi') };
      stage.upstream.script('gpt-x', at_once, at_once, at_once, { ...at_once, after });
      const { sdk, id } = await createBatch(stage);
      const { app } = stage.test;
      const { db, frozen, thaw } = freezingAt(app.db, at, { has_input });
      const { signal } = new AbortController();
      const data = { account_id: stage.client.account_id, task_id: id };
      const running = runBatch({ ...app, db, runs: signal }, { id: 'a', queue: 'batch.run', data, attempt: 0, signal });
      await frozen;
      await startWorker(app);
      const states = () => app.db.query('select count(*)::int, state from batch_lines group by state order by state');
      const half = [
        { count: 3, state: 'done' },
        { count: 3, state: 'sent' },
      ];
      await expect.poll(states, { timeout: 90_000, interval: 50 }).toEqual(half);
      thaw();
      await running;
      expect(await states()).toEqual(half);
      answer();
      await expectAllOnce(expect, stage, sdk, id);
      expect(stage.upstream.requests).toHaveLength(usual_count);
    } finally {
      answer();
      await stage.stop();
    }
  },
);
