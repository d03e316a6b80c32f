import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { listAlerts } from '../../src/alerts/alert.ts';
import { sendNotices } from '../../src/alerts/notices.ts';
import { checkAccounts } from '../../src/alerts/account-checks.ts';
import { default_settings, setSettings, type AlertSettings } from '../../src/alerts/settings.ts';
import { runAccountAlerts } from '../../src/alerts/watch.ts';
import { setThreshold } from '../../src/billing/alerts.ts';
import { readMigrations } from '../../src/db/sql-files.ts';
import { newId } from '../../src/lib/ids.ts';
import { removeAccountBudget, setAccountBudget, type AlertPercent } from '../../src/money/account-budgets.ts';
import { startWorker } from '../../src/worker.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { genuine, hour, minute, secretOf, signal, worldOf } from './setup.ts';

let server: MailServer;
let receiver: Receiver;
let test: TestApp;
let world: ReturnType<typeof worldOf>;

const clock = testClock();
const now = () => new Date(clock.now());

beforeAll(async () => {
  clock.run('2026-12-05T06:00:00Z'); // no month ends in the next days
  [server, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  const mail = `mail: { url: "${server.reference}", from: "Medley <medley@example.com>" }`;
  const yaml = `version: 1\n${mail}\nwebhooks: { retry_delays: [50ms] }\n`;
  test = await startTestApp({ worker: false, clock, yaml, env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  world = worldOf(test, clock);
});

afterAll(async () => {
  await test.stop();
  await Promise.all([server.stop(), receiver.stop()]);
});

beforeEach(async () => {
  await test.app.db.query('delete from balance_alerts');
  await test.app.db.query('delete from alert_settings');
  await test.app.db.query('delete from alerts');
  await test.app.db.query('update api_keys set deleted_at = created_at where deleted_at is null'); // limits of others
  server.mails.length = 0;
  server.be('take');
});

/** Looks at everything after this time; returns the subjects and the recipients of the mails that this sends. */
async function look(after_ms = minute): Promise<string[]> {
  clock.pass(after_ms);
  server.mails.length = 0;
  await runAccountAlerts(test.app, signal);
  return server.mails.map(({ subject, to }) => `${subject} -> ${to.join(' ')}`);
}

/** With 10.00 on it, and an alert below 5.00. */
async function alertedAccount(name: string, members?: Parameters<typeof world.account>[1]): Promise<string> {
  const account_id = await world.account(name, members);
  await setThreshold(test.app.db, account_id, 5_000_000n, now());
  return account_id;
}

const set = (account_id: string, change: Partial<AlertSettings>) =>
  setSettings(test.app.db, account_id, { ...default_settings, ...change }, now());

describe('the alert of a low balance', () => {
  it('is mailed when it opens, once a day while it stays, when the money is gone, and when it is over', async () => {
    const account_id = await alertedAccount('Life', { 'life@example.com': 'owner', 'dev@life.test': 'developer' });
    expect(await look()).toEqual([]);
    await world.spend(account_id, 6_000_000n);
    expect(await look()).toEqual(['Low balance in Life -> life@example.com']);
    expect(server.mails[0]?.text).toContain('has 4.00 USD available, which is less than 5.00 USD');
    expect(server.mails[0]?.text).toContain(`${test.url}/settings?tab=alerts`);
    expect(await look(23 * hour)).toEqual([]);
    expect(await look(hour)).toEqual(['Still: Low balance in Life -> life@example.com']);
    await world.spend(account_id, 4_000_000n);
    expect(await look()).toEqual(['Empty balance in Life -> life@example.com']);
    await world.topUp(account_id, 20_000_000n);
    expect(await look()).toEqual(['Closed: Empty balance in Life -> life@example.com']);
    expect(await look(48 * hour)).toEqual([]);
  });

  it('is sent once when the mail server is back, and not at all if it is over by then', async () => {
    const account_id = await alertedAccount('Away', { 'away@example.com': 'owner' });
    const brief = await alertedAccount('Brief', { 'brief@example.com': 'owner' });
    for (const each of [account_id, brief]) await world.spend(each, 6_000_000n);
    server.be('fail');
    expect(await look()).toEqual([]);
    await world.topUp(brief, 9_000_000n);
    server.be('take');
    expect(await look(10 * minute)).toEqual(['Low balance in Away -> away@example.com']);
    expect(await look(10 * minute)).toEqual([]);
  });

  it('is sent by another process if the first one dies while it sends, and never a third time', async () => {
    const account_id = await alertedAccount('Died', { 'died@example.com': 'owner' });
    await world.spend(account_id, 6_000_000n);
    const send = vi.fn<() => Promise<never>>(() => new Promise(() => undefined));
    const dying = { ...test.app, mailer: { ...test.app.mailer, send } };
    void runAccountAlerts(dying, signal);
    await expect.poll(() => send.mock.calls.length).toBe(1);
    expect(await look(4 * minute)).toEqual([]); // the first one may still be at it
    clock.pass(2 * minute);
    void runAccountAlerts(dying, signal);
    await expect.poll(() => send.mock.calls.length).toBe(2);
    expect(await look(10 * minute)).toEqual([]);
    expect(await look(24 * hour)).toEqual(['Still: Low balance in Died -> died@example.com']);
  });

  it('without an address waits for one, and delays no other', async () => {
    const nobody = await alertedAccount('Nobody');
    const refused = await alertedAccount('Refused', { 'refused@example.com': 'owner' });
    const later = await alertedAccount('Deferred', { 'later@example.com': 'owner' });
    for (const account_id of [nobody, refused, later]) await world.spend(account_id, 6_000_000n);
    server.be('fail', 'later@example.com');
    expect(await look()).toEqual(['Low balance in Refused -> refused@example.com']);
    await world.member(nobody, 'nobody-no-more@example.com', 'billing');
    server.be('take');
    const mails = await look(10 * minute);
    expect(mails.toSorted()).toEqual([
      'Low balance in Deferred -> later@example.com',
      'Low balance in Nobody -> nobody-no-more@example.com',
    ]);
  });

  it('that the mail server refuses for good counts as not sent, and is not tried again', async () => {
    const account_id = await alertedAccount('Gone', { 'gone@example.com': 'owner' });
    await world.spend(account_id, 6_000_000n);
    server.be('refuse', 'gone@example.com');
    expect(await look()).toEqual([]);
    expect(await listAlerts(test.app.db, account_id)).toMatchObject([{ kind: 'balance_low', notified_at: null }]);
    server.be('take');
    expect(await look(10 * minute)).toEqual([]);
    expect(await look(24 * hour)).toEqual(['Still: Low balance in Gone -> gone@example.com']);
  });

  it('is another one after a payment, also between two looks, or with another amount', async () => {
    const account_id = await alertedAccount('Again', { 'again@example.com': 'owner' });
    await world.spend(account_id, 6_000_000n);
    expect(await look()).toHaveLength(1);
    await world.topUp(account_id, 500_000n); // less than it takes
    expect(await look()).toEqual([]);
    await world.topUp(account_id, 2_000_000n);
    await world.spend(account_id, 3_000_000n);
    expect((await look()).toSorted()).toEqual([
      'Closed: Low balance in Again -> again@example.com',
      'Low balance in Again -> again@example.com',
    ]);
    await setThreshold(test.app.db, account_id, 6_000_000n, now());
    expect(await look()).toEqual(['Low balance in Again -> again@example.com']); // and nothing of the one before
    await setThreshold(test.app.db, account_id, null, now());
    expect(await look(2 * hour)).toEqual([]);
  });
});

describe('an alert', () => {
  it('of a key comes at 80 % of its limit, and as critical at 100 %', async () => {
    const account_id = await world.account('Keys', { 'keys@example.com': 'owner' });
    const key_id = await world.keyOf(account_id, 1_000_000n, 'Shop http://evil.example');
    await world.spend(account_id, 790_000n, { key_id });
    expect(await look()).toEqual([]);
    await world.spend(account_id, 10_000n, { key_id });
    expect(await look()).toEqual(['Limit near: Shop http evil. example in Keys -> keys@example.com']);
    expect(server.mails[0]?.text).toContain('has used 80 % of its limit for this month');
    await world.spend(account_id, 200_000n, { key_id });
    expect(await look()).toEqual(['Limit reached: Shop http evil. example in Keys -> keys@example.com']);
    await set(account_id, { key_limit: false });
    expect(await look(2 * hour)).toEqual([]);
  });

  it('goes to the members with the roles that are chosen, and to a receiver, signed and retried as other webhooks', async () => {
    const account_id = await alertedAccount('Chosen', { 'boss@example.com': 'owner', 'dev@example.com': 'developer' });
    await set(account_id, { roles: ['developer'], webhook_url: `${receiver.url}/chosen` });
    await world.spend(account_id, 6_000_000n);
    expect(await look()).toEqual(['Low balance in Chosen -> dev@example.com']);
    const deliveries = await test.app.db.query<{ id: string; event: string; url: string; task_id: string | null }>(
      'select id, event, url, task_id from deliveries where account_id = $1',
      [account_id],
    );
    expect(deliveries).toMatchObject([{ event: 'alert.opened', url: `${receiver.url}/chosen`, task_id: null }]);
    const jobs = await test.app.db.query('select name from pgboss.job where data->>$1 = $2', [
      'delivery_id',
      deliveries[0]?.id,
    ]);
    expect(jobs).toEqual([{ name: 'delivery.send' }]);
  });

  it('waits for the end of quiet hours, unless it is critical', async () => {
    clock.run('2027-01-15T22:30:00Z'); // 23:30 in Warsaw
    const quiet = { from: 22 * 60, to: 7 * 60, time_zone: 'Europe/Warsaw' };
    const low = await alertedAccount('Quiet', { 'quiet@example.com': 'owner' });
    const empty = await alertedAccount('Loud', { 'loud@example.com': 'owner' });
    for (const account_id of [low, empty]) await set(account_id, { quiet });
    await world.spend(low, 6_000_000n);
    await world.spend(empty, 10_000_000n);
    expect(await look()).toEqual(['Empty balance in Loud -> loud@example.com']);
    expect(await look(7 * hour)).toEqual([]); // 06:32
    expect(await look(30 * minute)).toEqual(['Low balance in Quiet -> quiet@example.com']);
  });

  it('comes after more than one read of alerts that nobody can be sent', async () => {
    await test.app.db.query(
      `insert into accounts (id, name, currency, status, webhook_secret, created_at)
       select 'acct_silent_' || i, 'Silent ' || i, 'USD', 'active', 'whsec_', $1 from generate_series(1, 1200) i`,
      [now()],
    );
    await test.app.db.query(
      `insert into alerts (id, account_id, kind, subject, level, title, summary, remind_after, opened_at, seen_at)
       select 'alert_silent_' || i, 'acct_silent_' || i, 'webhooks_failing', '', 1, 'Silent', 'Silent.', '1 day', $1, $1
         from generate_series(1, 1200) i`,
      [now()],
    );
    const account_id = await alertedAccount('Behind', { 'behind@example.com': 'owner' });
    await world.spend(account_id, 6_000_000n);
    expect(await look()).toEqual(['Low balance in Behind -> behind@example.com']);
    await test.app.db.query(`delete from alerts where id like 'alert_silent_%'`);
    await test.app.db.query(`delete from accounts where id like 'acct_silent_%'`);
  });

  it('beyond the number of an hour waits for the next one', async () => {
    const account_id = await world.account('Many', { 'many@example.com': 'owner' });
    await set(account_id, { per_hour_max: 2 });
    for (const name of ['A', 'B', 'C']) {
      const key_id = await world.keyOf(account_id, 1_000_000n, name);
      await world.spend(account_id, 900_000n, { key_id });
      clock.pass(minute);
    }
    expect(await look()).toHaveLength(2);
    expect(await look(30 * minute)).toEqual([]);
    expect(await look(30 * minute)).toHaveLength(1);
  });

  it('is sent by exactly one of two nodes that look and send at the same moment', async () => {
    const other = await test.beside({
      clock,
      yaml: `version: 1\nmail: { url: "${server.reference}", from: "a@b.test" }`,
    });
    try {
      const ids: string[] = [];
      for (let i = 0; i < 6; i++) ids.push(await alertedAccount(`Both ${i}`, { [`both-${i}@example.com`]: 'owner' }));
      for (const account_id of ids) await set(account_id, { webhook_url: `${receiver.url}/both` });
      for (const account_id of ids) await world.spend(account_id, 6_000_000n);
      const nodes = [test.app, other.app];
      await Promise.all(nodes.map((app) => checkAccounts(app)));
      await Promise.all([...nodes, ...nodes].map((app) => sendNotices(app, 'accounts', signal)));
      expect(server.mails.flatMap(({ to }) => to).toSorted()).toEqual(ids.map((_, i) => `both-${i}@example.com`));
      const [{ count } = { count: 0n }] = await test.app.db.query<{ count: bigint }>(
        'select count(*) from deliveries where url = $1',
        [`${receiver.url}/both`],
      );
      expect(count).toBe(6n);
    } finally {
      await other.stop();
    }
  });
});

it('calls that fail are an alert as soon as there are enough of them, and it is over when they are', async () => {
  const account_id = await world.account('Failing', { 'failing@example.com': 'owner' });
  await set(account_id, { error_percent: 50 });
  const { key } = await test.client({ account_id });
  const chat = async (word: string) => {
    const body = JSON.stringify({ model: 'sandbox/chat', max_tokens: 5, messages: [{ role: 'user', content: word }] });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    return (await fetch(`${test.url}/v1/chat/completions`, { method: 'POST', headers, body })).status;
  };
  const recorded = async (count: bigint) => {
    const countCalls = 'select count(*) from chat_calls where account_id = $1';
    await expect.poll(() => test.app.db.query(countCalls, [account_id])).toEqual([{ count }]);
  };
  for (let i = 0; i < 10; i++) expect(await chat('Hello')).toBe(200);
  for (let i = 0; i < 9; i++) expect(await chat('[[fail]]')).toBeGreaterThanOrEqual(500);
  await recorded(19n);
  expect(await look(0)).toEqual([]);
  expect(await chat('[[fail]]')).toBeGreaterThanOrEqual(500);
  await recorded(20n);
  expect(await look(0)).toEqual(['Many calls fail in Failing -> failing@example.com']);
  expect(server.mails[0]?.text).toContain('10 of 20 calls');
  expect(await look(30 * minute)).toEqual(['Closed: Many calls fail in Failing -> failing@example.com']);
});

it('webhooks of tasks that fail are an alert, and those of alerts are not', async () => {
  const account_id = await world.account('Hooks', { 'hooks@example.com': 'owner' });
  const add = (event: string, task_id: string | null, state = 'dropped') =>
    test.app.db.query(
      `insert into deliveries (account_id, id, task_id, event, url, body, lane, host, state, attempts, failures, created_at, ended_at, delivered_at)
       values ($1, $2, $3, $4, 'https://hook.example/x', '{}', 'x', 'hook.example', $6, 6, 6, $5, $5,
         case $6 when 'delivered' then $5::timestamptz end)`,
      [account_id, newId('dlv', clock.now()), task_id, event, now(), state],
    );
  for (let i = 0; i < 3; i++) await add('alert.opened', null);
  for (let i = 0; i < 2; i++) await add('task.succeeded', newId('task', clock.now()));
  expect(await look()).toEqual([]);
  await add('task.failed', newId('task', clock.now()));
  expect(await look()).toEqual(['Webhooks fail in Hooks -> hooks@example.com']);
  expect(server.mails[0]?.text).toContain('3 webhooks could not be delivered in the last hour, and 0 arrived');
  for (let i = 0; i < 4; i++) await add('task.succeeded', newId('task', clock.now()), 'delivered');
  expect(await look(11 * minute)).toEqual(['Closed: Webhooks fail in Hooks -> hooks@example.com']); // most arrive
});

it('people who got the mail of a low balance before the update do not get it again by it', async () => {
  clock.pass(2 * hour); // the webhooks of the test before are old by then
  const account_id = await alertedAccount('Before', { 'before@example.com': 'owner' });
  await world.spend(account_id, 10_000_000n);
  await test.app.db.query('update balance_alerts set told_at = $2, seen_entry = 3 where account_id = $1', [
    account_id,
    now(),
  ]);
  const { sql = '' } = readMigrations().find(({ name }) => name.startsWith('0220')) ?? {};
  for (const statement of sql.slice(sql.indexOf('-- People who got')).split(';\n')) await test.app.db.query(statement);
  await test.app.db.query('update alert_notices set claimed_at = $1, sent_at = $1', [now()]); // by the clock of the test
  expect(await look()).toEqual([]);
  expect(await look(24 * hour)).toEqual(['Still: Empty balance in Before -> before@example.com']);
  await world.topUp(account_id, 20_000_000n);
  expect(await look()).toEqual(['Closed: Empty balance in Before -> before@example.com']);
});

it('an alert is repeated once a day for a week, then once a week, and no more after thirty days', async () => {
  const account_id = await alertedAccount('Left', { 'left@example.com': 'owner' });
  await world.spend(account_id, 6_000_000n);
  const days: number[] = [];
  for (let day = 0; day <= 60; day++) {
    if ((await look(24 * hour)).length > 0) days.push(day);
  }
  expect(days).toEqual([0, 1, 2, 3, 4, 5, 6, 13, 20, 27]);
});

describe('the alert of a budget', () => {
  const setBudget = async (account_id: string, amount: bigint, id = newId('budget'), is_hard = true) => {
    const budget = { id, account_id, name: 'Team', scope: 'account', subject: null, period: 'day' } as const;
    expect(await setAccountBudget(test.app.db, { ...budget, amount, is_hard }, now())).toBe('set');
    return id;
  };

  /** A soft budget of a month, whose alerts are chosen again and again. */
  const budgetWithAlerts = (account_id: string) => {
    const budget_id = newId('budget');
    const budget = { id: budget_id, account_id, name: 'Team', scope: 'account', subject: null } as const;
    const setAlerts = async (...alert_percents: AlertPercent[]) => {
      const changed = { ...budget, period: 'month', amount: 1_000_000n, is_hard: false, alert_percents } as const;
      expect(await setAccountBudget(test.app.db, changed, now())).toBe('set');
    };
    return { budget_id, setAlerts };
  };

  it.each([true, false])('is mailed once at 50, 80 and 100 percent of each period, hard: %s', async (is_hard) => {
    clock.run(is_hard ? '2027-03-01T06:00:00Z' : '2027-03-11T06:00:00Z');
    const owner = `boss-${is_hard}@example.com`;
    const account_id = await world.account('Spenders', {
      [owner]: 'owner',
      [`dev-${is_hard}@example.com`]: 'developer',
    });
    await set(account_id, { webhook_url: `${receiver.url}/budgets` });
    await setBudget(account_id, 1_000_000n, newId('budget'), is_hard);
    await world.spend(account_id, 490_000n);
    expect(await look()).toEqual([]);
    await world.spend(account_id, 10_000n);
    const mailsOf = (title: string) => [`${title}: Team in Spenders -> ${owner}`];
    expect(await look()).toEqual(mailsOf('Budget at 50 %'));
    expect(server.mails[0]?.text).toContain('The budget "Team" of 1.000000 until 2027-03-');
    const [first, second] = await Promise.all([runAccountAlerts(test.app, signal), runAccountAlerts(test.app, signal)]);
    expect([first, second, await look()]).toEqual([undefined, undefined, []]);
    await world.spend(account_id, 310_000n);
    expect(await look()).toEqual(mailsOf('Budget at 80 %'));
    await world.spend(account_id, 190_000n);
    expect(await look()).toEqual(mailsOf('Budget reached'));
    const deliveries = await test.app.db.query<{ event: string }>(
      'select event from deliveries where account_id = $1',
      [account_id],
    );
    expect(deliveries.map(({ event }) => event)).toEqual(['alert.opened', 'alert.opened', 'alert.opened']);
  });

  it('is mailed at the percentages that are chosen alone, and ends when they are no longer', async () => {
    clock.run('2027-04-01T06:00:00Z');
    const account_id = await world.account('Choosers', { 'choose@example.com': 'owner' });
    const mailOf = (title: string) => `${title}: Team in Choosers -> choose@example.com`;
    const { setAlerts } = budgetWithAlerts(account_id);
    await setAlerts(80);
    await world.spend(account_id, 600_000n);
    expect(await look()).toEqual([]);
    await world.spend(account_id, 250_000n);
    expect(await look()).toEqual([mailOf('Budget at 80 %')]);
    await world.spend(account_id, 150_000n);
    expect(await look()).toEqual([]);
    await setAlerts(80, 100);
    expect(await look()).toEqual([mailOf('Budget reached')]);
    await setAlerts();
    expect(await look()).toEqual([]);
    expect(await listAlerts(test.app.db, account_id)).toEqual([]);
  });

  it('of a lower percentage is not sent when the higher one, which was sent, is no longer chosen', async () => {
    clock.run('2027-05-01T06:00:00Z');
    const account_id = await world.account('Unchoosers', { 'unchoose@example.com': 'owner' });
    const { budget_id, setAlerts } = budgetWithAlerts(account_id);
    const titles = async () => (await listAlerts(test.app.db, account_id)).map(({ title }) => title);
    await setAlerts(50, 80, 100);
    await world.spend(account_id, 850_000n);
    expect(await look()).toEqual(['Budget at 80 %: Team in Unchoosers -> unchoose@example.com']);
    await setAlerts(50);
    expect(await look()).toEqual([]);
    expect(await titles()).toEqual(['Budget at 80 %: Team']);
    await setAlerts(50, 80, 100);
    await world.spend(account_id, 150_000n);
    expect(await look()).toEqual(['Budget reached: Team in Unchoosers -> unchoose@example.com']);
    await setAlerts(80);
    expect(await look()).toEqual([]);
    expect(await titles()).toEqual(['Budget reached: Team']);
    await removeAccountBudget(test.app.db, account_id, budget_id);
    await look();
  });

  it('is told of the most that it has come to, once more in the next period, and of no other when it is removed', async () => {
    clock.run('2027-03-21T06:00:00Z');
    const account_id = await world.account('Jumpers', { 'jump@example.com': 'owner' });
    const id = await setBudget(account_id, 1_000_000n);
    await world.spend(account_id, 850_000n);
    expect(await look()).toEqual(['Budget at 80 %: Team in Jumpers -> jump@example.com']);
    expect(await look(2 * hour)).toEqual([]);
    await world.spend(account_id, 150_000n);
    expect(await look()).toEqual(['Budget reached: Team in Jumpers -> jump@example.com']);
    expect(await look(20 * hour)).toEqual([]); // its day is over, which is no news
    await world.spend(account_id, 500_000n);
    expect(await look()).toEqual(['Budget at 50 %: Team in Jumpers -> jump@example.com']);
    expect((await listAlerts(test.app.db, account_id)).map(({ title }) => title)).toEqual(['Budget at 50 %: Team']);
    await removeAccountBudget(test.app.db, account_id, id);
    expect(await look()).toEqual([]);
    expect(await listAlerts(test.app.db, account_id)).toEqual([]);
  });
});

// The last: its worker sends alerts, too.
it('a receiver reads a genuine alert that a worker delivers, after a failure too', async () => {
  const account_id = await alertedAccount('Signed', { 'signed@example.com': 'owner' });
  await set(account_id, { webhook_url: `${receiver.url}/signed?token=1` });
  await world.spend(account_id, 6_000_000n);
  let tries = 0;
  receiver.answer('/signed', () => (++tries === 1 ? 500 : 204));
  await runAccountAlerts(test.app, signal);
  await startWorker(test.app);
  const first = await receiver.nth('/signed', 1);
  const second = await receiver.nth('/signed', 2);
  const secret = await secretOf(test, account_id);
  const alert = genuine(first, secret);
  expect(alert).toMatchObject({ event: 'opened', kind: 'balance_low', level: 'warning', number: 1 });
  expect(second.body.equals(first.body)).toBe(true);
});
