import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runAccountAlerts } from '../../src/alerts/watch.ts';
import { setThreshold } from '../../src/billing/alerts.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { minute, signal, worldOf } from './setup.ts';

/** Workers of their own, killed while they send a mail. */
const program = join(import.meta.dirname, '../helpers/node-child.ts');
const clock = testClock();

let server: MailServer;
let test: TestApp;
let world: ReturnType<typeof worldOf>;

beforeAll(async () => {
  server = await startMailServer();
  const yaml = `version: 1\nmail: { url: "${server.reference}", from: "medley@example.com" }\nstorage: { shared: true }\n`;
  test = await startTestApp({ worker: false, clock, yaml });
  world = worldOf(test, clock);
});

afterAll(async () => {
  await test.stop();
  await server.stop();
});

/** Starts a worker, and kills it once the mail server has seen this. */
async function killWhen(happened: () => boolean): Promise<void> {
  const env = childEnvironment(test.app, { role: 'worker' });
  const child = spawn(process.execPath, [program], { env, stdio: 'ignore' });
  const exit = once(child, 'exit');
  try {
    await expect.poll(happened, { timeout: 120_000, interval: 20 }).toBe(true);
  } finally {
    child.kill('SIGKILL');
    await exit;
  }
}

const ids = () => server.mails.map(({ raw }) => /^Message-ID: (.*)$/im.exec(raw)?.[1]);

async function look(after_ms: number): Promise<void> {
  clock.pass(after_ms);
  await runAccountAlerts(test.app, signal);
}

it('a worker killed before the mail server answers, and one killed before it hears that the mail is taken, lose no message', async () => {
  const account_id = await world.account('Killed', { 'killed@example.com': 'owner' });
  await setThreshold(test.app.db, account_id, 5_000_000n, new Date(clock.now()));
  await world.spend(account_id, 6_000_000n);
  server.be('hang');
  await killWhen(() => server.connections() > 0);
  server.be('take');
  await look(4 * minute);
  expect(server.mails).toEqual([]); // the worker might still be at it
  server.be('take in silence');
  await test.app.db.query(
    `update alert_notices set claimed_at = claimed_at - interval '6 minutes' where state = 'claimed'`,
  );
  await killWhen(() => server.mails.length === 1);
  server.be('take');
  await look(6 * minute);
  await look(minute);
  const [first] = ids();
  expect(first).toMatch(/^<alert_\w+-1-opened@/);
  expect(ids()).toEqual([first]); // taken once, and tried no third time
  expect(await test.app.db.query('select claims, state from alert_notices')).toEqual([{ claims: 2, state: 'claimed' }]);
});
