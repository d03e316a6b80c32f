import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { startTestApp } from '../helpers/app.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');

/** Starts another node on the database of a test, in which `insert` raises when a sign-in link is written. */
async function startWhere(raise: string, { has_account = true } = {}) {
  const first = await startTestApp({ yaml: 'version: 1\nstorage: { shared: true }\n' });
  const db = openDatabase({ connection: first.app.db.connection, connections_max: 1 });
  if (has_account) await first.client();
  await db.query('create sequence links_written');
  await db.query(
    `create function fail_link() returns trigger language plpgsql as $$ begin ${raise} return new; end $$`,
  );
  await db.query('create trigger fail_link before insert on login_links for each row execute function fail_link()');
  const child = spawn(process.execPath, [program], {
    env: childEnvironment(first.app, { role: 'api' }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const printed = { out: '', error: '' };
  child.stdout.on('data', (part: Buffer) => (printed.out += part.toString()));
  child.stderr.on('data', (part: Buffer) => (printed.error += part.toString()));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await db.close();
    await first.stop();
  });
  return { child, printed };
}

const patience = { timeout: 120_000 };
const address = /Medley is running at (http:\S+)/;

test('a service whose database goes away while it makes the sign-in link waits for it and prints the link', async () => {
  const { printed } = await startWhere(
    `if nextval('links_written') = 1 then raise exception 'gone' using errcode = '57P01'; end if;`,
  );
  await expect.poll(() => printed.out, patience).toMatch(/Sign in to the dashboard \(once, within an hour\): http/);
  expect(printed.error).toBe('');
});

test('a service that cannot make the sign-in link says so and serves its callers', async () => {
  const { child, printed } = await startWhere(`raise exception 'no room for links';`);
  await expect
    .poll(() => printed.error, patience)
    .toMatch(/^Medley runs, but the sign-in link could not be made: no room .* login-link$/m);
  await expect.poll(() => printed.out, patience).toMatch(address);
  const [, url = ''] = address.exec(printed.out) ?? [];
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect(child.exitCode).toBeNull();
});

test('the key of a first start is printed although the sign-in link cannot be made', async () => {
  const { printed } = await startWhere(`raise exception 'no room for links';`, { has_account: false });
  await expect.poll(() => printed.out, patience).toMatch(/^API key, shown only now: mdl_\w+$/m);
  await expect.poll(() => printed.error, patience).toMatch(/^Medley runs, but the sign-in link could not be made/);
});
