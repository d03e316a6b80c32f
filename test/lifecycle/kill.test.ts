import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { embeddedConnection } from '../../src/db/embedded.ts';
import { checkBooks } from '../../src/money/books.ts';
import { service_rules } from '../../src/chat/books.ts';
import { removeFolder, temporaryFolder } from '../helpers/embedded.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

/** The real process with its embedded PostgreSQL, killed by -9; at each step of a task's life in failpoints.test.ts. */
describe('kill -9', () => {
  let folder: string;
  let port: number;
  let child: ChildProcess | undefined;
  let key = '';

  beforeEach(async () => {
    folder = temporaryFolder(0o755);
    port = await freePort();
    key = '';
  });
  afterEach(async () => {
    if (child && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    removeFolder(folder);
  });

  /** Starts the service and waits until it is ready; remembers the key of the first start. */
  async function start(env: Record<string, string> = {}): Promise<ChildProcess> {
    const started = spawn(process.execPath, [main], {
      env: { ...process.env, PORT: String(port), MEDLEY_DATA: join(folder, 'data'), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    let output = '';
    started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await expect.poll(() => output, { timeout: 30_000, interval: 50 }).toContain('hello.png');
    key ||= /mdl_[0-9A-Za-z]{36}/.exec(output)?.[0] ?? '';
    return started;
  }

  async function call(method: string, path: string, body?: object) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as {
      id: string;
      status: string;
      cost: { exact: string };
      data: { id: string; status: string }[];
    };
  }
  const generate = (prompt: string, model = 'sandbox/video') =>
    call('POST', '/v1/generate', { model, input: { prompt, ...(model === 'sandbox/video' && { duration: 1 }) } });

  async function withDatabase<T>(work: (db: Db) => Promise<T>): Promise<T> {
    const connection = await embeddedConnection(join(folder, 'data'));
    if (!connection) throw new Error('the database does not run');
    const db = openDatabase({ connection });
    try {
      return await work(db);
    } finally {
      await db.close();
    }
  }

  /** Every task final, every hold closed once, the books exact. */
  async function expectAllWell(tasks: number): Promise<string[]> {
    const statuses = async () => (await call('GET', '/v1/tasks?limit=100')).data.map((task) => task.status);
    await expect
      .poll(async () => (await statuses()).every((status) => status === 'succeeded' || status === 'failed'), {
        timeout: 40_000,
        interval: 200,
      })
      .toBe(true);
    const final = await statuses();
    expect(final.length).toBe(tasks);
    const report = await withDatabase((db) => checkBooks(db, { full: true, more: service_rules }));
    expect(report).toMatchObject({ ok: true, open_holds: 0, difference: '0.000000', findings: [] });
    return final;
  }

  it('while it submits: after the restart the task succeeds and the money is exact', async () => {
    const first = await start({ MEDLEY_FAILPOINTS: 'task.submitted=kill' });
    await generate('x').catch(() => undefined); // the connection may break with the process
    if (first.signalCode === null) await once(first, 'exit');
    expect(first.signalCode).toBe('SIGKILL');
    await start();
    expect(await expectAllWell(1)).toEqual(['succeeded']);
  }, 90_000);

  it('of PostgreSQL: the service goes on by itself', async () => {
    await start();
    const ids = [];
    for (let i = 0; i < 8; i++) ids.push((await generate(`[[delay ${i % 4}s]] x`)).id);
    const postmaster = await withDatabase(async (db) => {
      const [row] = await db.query<{ pid: number }>('select pg_backend_pid() as pid');
      return parentOf(row?.pid ?? 0);
    });
    process.kill(postmaster, 'SIGKILL');
    const alive = async () => (await fetch(`http://127.0.0.1:${port}/livez`)).status;
    expect(await alive()).toBe(200);
    const ready = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        (answer) => answer.status,
        () => 0,
      );
    await expect.poll(ready, { timeout: 20_000, interval: 100 }).toBe(200);
    expect((await expectAllWell(ids.length)).filter((status) => status === 'succeeded').length).toBe(ids.length);
  }, 90_000);

  it('of the process while many tasks are under way: none is lost', async () => {
    const first = await start();
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        generate(`[[delay ${i % 3}s]] x`, i % 2 === 0 ? 'sandbox/image' : 'sandbox/audio'),
      ),
    );
    first.kill('SIGKILL');
    await once(first, 'exit');
    await start();
    const final = await expectAllWell(answers.filter((answer) => answer.status === 'fulfilled').length);
    expect(final.every((status) => status === 'succeeded')).toBe(true);
  }, 90_000);
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function parentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]);
}
