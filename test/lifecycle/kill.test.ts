// nightly: each of its tests starts a service with a PostgreSQL of its own
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { embeddedConnection } from '../../src/embedded-postgres/embedded.ts';
import { checkBooks } from '../../src/money/books.ts';
import { service_rules } from '../../src/chat/books.ts';
import { startWebUi } from '../providers/imitations/automatic1111.ts';
import { startComfyUi } from '../providers/imitations/comfyui/server.ts';
import { textToImage } from '../providers/imitations/comfyui/workflows.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { freePort } from '../helpers/free-port.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

type Answer = { id: string; status: string; cost: { exact: string }; data: { id: string; status: string }[] };

/** The service on a data folder and a port of its own, with its embedded PostgreSQL. */
type Service = {
  /** Starts it and waits until it is ready; remembers the key of the first start. */
  start(env?: Record<string, string>): Promise<ChildProcess>;
  url: string;
  call(method: string, path: string, body?: object): Promise<Answer>;
  generate(prompt: string, model?: string): Promise<Answer>;
  withDatabase<T>(work: (db: Db) => Promise<T>): Promise<T>;
};

type Ending = { onTestFinished(end: () => void | Promise<void>): void };

/** Gone at the end of the test. */
async function makeService(context: Ending): Promise<Service> {
  const folder = clusterFolder();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const data_dir = join(folder, 'data');
  let child: ChildProcess | undefined;
  let key = '';
  context.onTestFinished(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    removeFolder(folder);
  });
  const start: Service['start'] = async (env = {}) => {
    const started = spawn(process.execPath, [main], {
      env: { ...process.env, PORT: String(port), MEDLEY_DATA: data_dir, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    let output = '';
    started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await vi.waitFor(() => expect(output).toContain('hello.png'), { timeout: 90_000, interval: 50 });
    key ||= /mdl_[0-9A-Za-z]{36}/.exec(output)?.[0] ?? '';
    return started;
  };
  const call: Service['call'] = async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Answer;
  };
  const generate: Service['generate'] = (prompt, model = 'sandbox/video') =>
    call('POST', '/v1/generate', { model, input: { prompt, ...(model === 'sandbox/video' && { duration: 1 }) } });
  return { start, url, call, generate, withDatabase: (work) => withDatabase(data_dir, work) };
}

async function withDatabase<T>(data_dir: string, work: (db: Db) => Promise<T>): Promise<T> {
  const connection = await embeddedConnection(data_dir);
  if (!connection) throw new Error('the database does not run');
  const db = openDatabase({ connection });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

/** A service with machines of the operator's, which live on while it is killed. */
async function startSite() {
  const [comfy, web_ui] = await Promise.all([startComfyUi(), startWebUi()]);
  const ends: (() => void | Promise<void>)[] = [];
  const service = await makeService({ onTestFinished: (end) => void ends.push(end) });
  const folder = mkdtempSync(join(tmpdir(), 'medley-machines-'));
  const config_file = join(folder, 'medley.yaml');
  writeFileSync(join(folder, 'portrait.json'), JSON.stringify(textToImage()));
  const schema = '{ type: object, properties: { prompt: { type: string } } }';
  writeFileSync(
    config_file,
    `version: 1
providers:
  studio: { adapter: comfyui, base_url: "${comfy.url}", allow_private: true }
  webui: { adapter: automatic1111, base_url: "${web_ui.url}", allow_private: true }
models:
  - id: portrait
    kind: image
    input_schema: ${schema}
    price: [{ unit: image, amount: "0.01" }]
    routes: [{ provider: studio, options: { workflow: portrait.json, inputs: { prompt: Positive.text } } }]
  - id: drawing
    kind: image
    input_schema: ${schema}
    price: [{ unit: image, amount: "0.01" }]
    routes: [{ provider: webui, upstream_model: current, timeout: { start: 15s } }]
`,
  );
  return {
    service,
    comfy,
    web_ui,
    config_file,
    [Symbol.asyncDispose]: async () => {
      for (const end of ends) await end();
      await Promise.all([comfy.stop(), web_ui.stop()]);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Every task final, every hold closed once, the books exact. */
async function expectAllWell({ call, withDatabase: using }: Service, tasks: number): Promise<string[]> {
  const statuses = async () => (await call('GET', '/v1/tasks?limit=100')).data.map((task) => task.status);
  const isFinal = (status: string) => status === 'succeeded' || status === 'failed';
  await vi.waitFor(async () => expect((await statuses()).every(isFinal)).toBe(true), {
    timeout: 80_000,
    interval: 200,
  });
  const final = await statuses();
  expect(final.length).toBe(tasks);
  const report = await using((db) => checkBooks(db, { full: true, more: service_rules }));
  expect(report).toMatchObject({ ok: true, open_holds: 0, difference: '0.000000', findings: [] });
  return final;
}

/** The real process killed by -9; at each step of a task's life in failpoints.test.ts. Mostly they wait for 10 s without a heartbeat. */
describe.concurrent('kill -9', () => {
  it('during a submit is followed by a restart in which the task succeeds with exact money', async (context) => {
    const service = await makeService(context);
    const first = await service.start({ MEDLEY_FAILPOINTS: 'task.submitted=kill' });
    await service.generate('x').catch(() => undefined); // the connection may break with the process
    if (first.signalCode === null) await once(first, 'exit');
    expect(first.signalCode).toBe('SIGKILL');
    await service.start();
    expect(await expectAllWell(service, 1)).toEqual(['succeeded']);
  }, 240_000);

  it.each(['task.submitted', 'task.accepted'])(
    'at %s of a run on a machine of the operator is followed by a restart that finds the run, which is made once',
    async (point) => {
      await using site = await startSite();
      const { service, comfy } = site;
      const env = { MEDLEY_CONFIG: site.config_file };
      const first = await service.start({ ...env, MEDLEY_FAILPOINTS: `${point}=kill` });
      await service.generate('x', 'portrait').catch(() => undefined); // the connection may break with the process
      if (first.signalCode === null) await once(first, 'exit');
      expect(first.signalCode).toBe('SIGKILL');
      expect(comfy.machine.accepted).toHaveLength(1);
      await service.start(env);
      expect(await expectAllWell(service, 1)).toEqual(['succeeded']);
      expect(comfy.machine.accepted).toHaveLength(1);
    },
    240_000,
  );

  it('while a web UI draws leaves a task that nobody repeats, and that costs nothing', async () => {
    await using site = await startSite();
    const { service, web_ui } = site;
    const env = { MEDLEY_CONFIG: site.config_file };
    web_ui.holdUntil(new Promise(() => undefined));
    const first = await service.start(env);
    const submitted = web_ui.nextRequest('submit');
    const { id } = await service.generate('x', 'drawing');
    await submitted;
    first.kill('SIGKILL');
    await once(first, 'exit');
    await service.start(env);
    expect(await expectAllWell(service, 1)).toEqual(['failed']);
    const task = await service.call('GET', `/v1/tasks/${id}`);
    expect(task).toMatchObject({ cost: { exact: '0.000000' }, error: { type: 'upstream_error' } });
    expect(web_ui.requestsFor('submit')).toHaveLength(1);
  }, 240_000);

  it('of PostgreSQL leaves a service that continues by itself', async (context) => {
    const service = await makeService(context);
    await service.start();
    const ids = [];
    for (let i = 0; i < 8; i++) ids.push((await service.generate(`[[delay ${i % 4}s]] x`)).id);
    const postmaster = await service.withDatabase(async (db) => {
      const [row] = await db.query<{ pid: number }>('select pg_backend_pid() as pid');
      return parentOf(row?.pid ?? 0);
    });
    process.kill(postmaster, 'SIGKILL');
    const alive = async () => (await fetch(`${service.url}/livez`)).status;
    expect(await alive()).toBe(200);
    const ready = () =>
      fetch(`${service.url}/readyz`).then(
        (answer) => answer.status,
        () => 0,
      );
    await vi.waitFor(async () => expect(await ready()).toBe(200), { timeout: 120_000, interval: 100 });
    const final = await expectAllWell(service, ids.length);
    expect(final.filter((status) => status === 'succeeded').length).toBe(ids.length);
  }, 240_000);

  it('of the process during many tasks loses none', async (context) => {
    const service = await makeService(context);
    const first = await service.start();
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        service.generate(`[[delay ${i % 3}s]] x`, i % 2 === 0 ? 'sandbox/image' : 'sandbox/audio'),
      ),
    );
    first.kill('SIGKILL');
    await once(first, 'exit');
    await service.start();
    const final = await expectAllWell(service, answers.filter((answer) => answer.status === 'fulfilled').length);
    expect(final.every((status) => status === 'succeeded')).toBe(true);
  }, 240_000);
});

function parentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]);
}
