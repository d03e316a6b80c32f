import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test, type TestContext } from 'vitest';
import { startTestApp } from '../helpers/app.ts';
import { childEnvironment } from '../helpers/child-environment.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');

/** Starts a worker on the database of a test, in which `body` runs in the midst of its start. */
async function startWorkerWhere(body: string, { onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const { app, stop } = await startTestApp({ worker: false, yaml: 'version: 1\nstorage: { shared: true }\n' });
  await app.db.query('create sequence queues_made');
  await app.db.query(
    `create function meet_queue() returns trigger language plpgsql as $$ begin ${body} return new; end $$`,
  );
  await app.db.query(`create trigger meet_queue before insert on pgboss.queue
    for each row when (new.name = 'duty.invoices') execute function meet_queue()`);
  const child = spawn(process.execPath, [program], {
    env: childEnvironment(app, { role: 'worker' }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const printed = { out: '', error: '' };
  child.stdout.on('data', (part: Buffer) => (printed.out += part.toString()));
  child.stderr.on('data', (part: Buffer) => (printed.error += part.toString()));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    await stop();
  });
  return { app, child, exited, printed };
}

test.concurrent('a worker whose database goes away in the midst of its start waits for it: it may work on jobs already', async ({
  expect,
  onTestFinished,
}) => {
  const { child, exited, printed } = await startWorkerWhere(
    `if nextval('queues_made') = 1 then raise exception 'gone' using errcode = '57P01'; end if;`,
    { onTestFinished },
  );
  await expect.poll(() => printed.out + printed.error).toContain('Medley worker is running.');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  expect(printed.error).toBe('');
});

test.concurrent('a worker that is stopped in the midst of its start ends without an error', async ({
  expect,
  onTestFinished,
}) => {
  const { app, child, exited, printed } = await startWorkerWhere('perform pg_sleep(2);', { onTestFinished });
  const sleeping = () =>
    app.db.query("select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'");
  await expect.poll(sleeping, { interval: 50 }).toHaveLength(1);
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
  expect(printed).toEqual({ out: '', error: '' });
});
