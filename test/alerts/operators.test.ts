import { hostname } from 'node:os';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { reportDisks } from '../../src/alerts/disks.ts';
import { runServiceAlerts } from '../../src/alerts/watch.ts';
import { newId } from '../../src/lib/ids.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { genuine, hour, minute, signal } from './setup.ts';

let server: MailServer;
let receiver: Receiver;
let test: TestApp;

const clock = testClock();
const now = () => new Date(clock.now());
const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const day = (days: number) => new Date(clock.now() + days * 24 * hour).toISOString().slice(0, 10);

const models = (retires: string) => `
providers: { up: { adapter: openai, base_url: "http://127.0.0.1:9", allow_private: true } }
models:
  - { id: test/one, kind: chat, retires: ${retires}, replaced_by: test/two, price: [{ unit: input_token, amount: "1" }], routes: [{ provider: up }] }
  - { id: test/two, kind: chat, price: [{ unit: input_token, amount: "1" }], routes: [{ provider: up, id: a }, { provider: sandbox, id: b }] }
`;

const settings = (alerts: string) =>
  `version: 1\nmail: { url: "${server.reference}", from: "medley@example.com" }\nwebhooks: { retry_delays: [1m, 5m] }\nalerts: ${alerts}\n`;

let usual: string;

beforeAll(async () => {
  [server, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  vi.stubEnv('ALERT_SECRET', secret);
  usual = settings(
    `{ mail: [ops@example.com], webhook_url: "${receiver.url}/ops", webhook_secret: "env:ALERT_SECRET" }`,
  );
  test = await startTestApp({ worker: false, clock, yaml: usual });
});

afterAll(async () => {
  await test.stop();
  await Promise.all([server.stop(), receiver.stop()]);
  vi.unstubAllEnvs();
});

beforeEach(async () => {
  for (const table of ['alerts', 'disks', 'route_health', 'book_checks', 'chat_calls'])
    await test.app.db.query(`delete from ${table}`);
  await test.configure(usual);
  receiver.answer('/ops', 204);
  receiver.received.length = 0;
});

/** Subjects of the mails, and events of the webhooks, that a look after this time sends. */
async function look(after_ms = minute): Promise<string[]> {
  clock.pass(after_ms);
  server.mails.length = 0;
  receiver.received.length = 0;
  await runServiceAlerts(test.app, signal);
  const posts = receiver.received.map((request) => genuine(request, secret));
  return [
    ...server.mails.map(({ subject }) => subject.replace(/ in 127\.0\.0\.1.*$/, '').replace(/ in 127.*$/, '')),
    ...posts.map(({ event, kind, level }) => `${event} ${kind} ${level}`),
  ];
}

/** Without an account the route is open for all. */
async function open(route: string, minutes_ago: number, account_id = ''): Promise<void> {
  await test.app.db.query(
    `insert into route_health (route, account_id, cause, openings, opened_at, retry_at) values ($1, $4, 'timeout', 1, $2, $3)`,
    [route, new Date(clock.now() - minutes_ago * minute), new Date(clock.now() + minute), account_id],
  );
}

/** A new account whose key has just been used. */
async function accountInUse(): Promise<string> {
  const { account_id, key_id } = await test.client();
  await test.app.db.query('update api_keys set last_used_at = $2 where id = $1', [key_id, now()]);
  return account_id;
}

it('a provider that fails for all accounts is an alert after five minutes, critical where no other route is left', async () => {
  await test.configure(usual + models('2099-01-01'));
  await open('test/two#a', 2);
  expect(await look(0)).toEqual([]);
  expect(await look(4 * minute)).toEqual(['up is down', 'opened provider_down warning']);
  expect(server.mails[0]).toMatchObject({ to: ['ops@example.com'] });
  expect(server.mails[0]?.text).toContain('test/two#a (timeout)');
  expect(server.mails[0]?.text).toContain(`${test.url}/admin/alerts`);
  await open('test/one#up', 6);
  expect(await look()).toEqual(['up is down', 'raised provider_down critical']);
  expect(server.mails[0]?.text).toContain('No other route is left of test/one.');
  await test.app.db.query('delete from route_health');
  expect(await look(3 * minute)).toEqual([]); // it may come back
  expect(await look(3 * minute)).toEqual(['Closed: up is down', 'closed provider_down critical']);
});

it('a provider that fails for each account that calls is an alert, be it one alone, and for one of several it is none', async () => {
  await test.app.db.query('update api_keys set last_used_at = null');
  await test.configure(usual + models('2099-01-01'));
  const one = await accountInUse();
  await open('test/two#a', 4, one);
  expect(await look(0)).toEqual([]);
  expect(await look(2 * minute)).toEqual(['up is down', 'opened provider_down warning']);
  const other = await accountInUse();
  expect(await look(6 * minute)).toEqual(['Closed: up is down', 'closed provider_down warning']);
  await open('test/two#a', 6, other);
  expect(await look()).toEqual(['up is down', 'opened provider_down warning']);
});

it('a provider that nobody has asked for an hour is an alert no more', async () => {
  await test.configure(usual + models('2099-01-01'));
  await open('test/two#a', 6);
  expect(await look(0)).toEqual(['up is down', 'opened provider_down warning']);
  expect(await look(59 * minute)).toEqual([]);
  expect(await look(3 * minute)).toEqual([]); // of a minute's pause the hour is over, and the alert stays for five
  expect(await look(5 * minute)).toEqual(['Closed: up is down', 'closed provider_down warning']);
});

it('a model that ends within 30 days is an alert once a week, and its end is none', async () => {
  const end = day(20);
  await test.configure(usual + models(end));
  expect(await look(0)).toEqual([`Models end on ${end}`, 'opened model_retiring warning']);
  expect(server.mails[0]?.text).toContain(`test/one ends on ${end}; use test/two instead.`);
  expect(await look(6 * 24 * hour)).toEqual([]);
  expect(await look(24 * hour + minute)).toEqual([
    expect.stringMatching(/^Still: /),
    'reminder model_retiring warning',
  ]);
  await test.configure(usual);
  expect(await look()).toEqual([]);
});

it('a disk with little room, missing backups and books that differ are alerts', async () => {
  const backups = `backup: { every: 1h, to: ${join(test.app.config.data_dir, 'backups')} }\n`;
  const alerts = '{ mail: [ops@example.com], disk_percent_min: 99 }';
  await test.configure(settings(alerts) + backups);
  await reportDisks(test.app);
  await test.app.db.query(
    `insert into scheduled_backups (id, place, host, started_at, ended_at, state, error) values ('b', 'x', 'y', $1, $1, 'failed', 'the disk is full')`,
    [now()],
  );
  await test.app.db.query(
    `insert into book_checks (started_at, ended_at, is_full, accounts, entries, open_holds, difference, findings)
     values ($1, $1, false, 1, 1, 0, '0.000001', '[{"rule":"x"}]')`,
    [now()],
  );
  const subjects = await look(0);
  expect(subjects.toSorted()).toEqual([
    'Backups are missing',
    `Little free space on ${hostname()}`.replaceAll(/[^\p{L}\p{N} -]/gu, (sign) => sign),
    'The books do not add up',
  ]);
  expect(server.mails.map(({ text }) => text).join('')).toContain('the disk is full');
  clock.pass(20 * minute); // the process that reported the disk is gone
  expect(await look(0)).toEqual([expect.stringMatching(/^Closed: Little free space/)]);
});

it('a receiver that fails gets the same message again, by its id, as often as webhooks are retried', async () => {
  await test.configure(usual + models(day(20)));
  receiver.answer('/ops', 500);
  expect(await look(0)).toContain('opened model_retiring warning');
  const id = receiver.received[0]?.headers['webhook-id'];
  expect(await look(30_000)).toEqual([]);
  expect(await look(minute)).toEqual(['opened model_retiring warning']);
  expect(receiver.received[0]?.headers['webhook-id']).toBe(id);
  receiver.answer('/ops', 204);
  expect(await look(6 * minute)).toEqual(['opened model_retiring warning']);
  expect(await look(6 * minute)).toEqual([]);
});

/** Writes records of chat calls that began now. */
async function calls(model: string, status: number, count: number): Promise<void> {
  await test.app.db.query(
    `insert into chat_calls (account_id, id, key_id, model, style, stream, status, attempts, input_tokens,
       cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, total_ms, created_at)
     select 'acct_calls', $1 || i, 'key_1', $2, 'openai', false, $3, '[]', 1, 0, 0, 1, 0, false, 0, 'USD', 1, $4
       from generate_series(1, $5::int) i`,
    [newId('chat', clock.now()), model, status, now(), count],
  );
}

it('calls that fail are an alert which waits for the end of quiet hours until half of them fail; the sandbox is left out', async () => {
  clock.run('2027-01-15T22:30:00Z'); // 23:30 in Warsaw
  const quiet = 'quiet_hours: { from: "22:00", to: "07:00", time_zone: Europe/Warsaw }';
  await test.configure(settings(`{ mail: [ops@example.com], ${quiet} }`) + models('2099-01-01'));
  await calls('sandbox/chat', 502, 100);
  await calls('test/two', 200, 16);
  await calls('test/two', 502, 3);
  expect(await look(0)).toEqual([]);
  await calls('test/two', 500, 1);
  expect(await look(0)).toEqual([]);
  const alerts = await test.app.db.query('select kind, level, summary from alerts where closed_at is null');
  const summary = expect.stringContaining('4 of 20 calls and generations of all accounts failed');
  expect(alerts).toEqual([{ kind: 'error_rate', level: 1, summary }]);
  await calls('test/two', 504, 12);
  expect(await look(0)).toEqual(['Many calls fail']); // 16 of 32
  expect(server.mails[0]?.text).toContain('16 of 32');
});

it('one that surprises the sender delays no other, and is tried again', async () => {
  const end = day(20);
  await test.configure(usual + models(end));
  await test.app.db.query(
    `insert into book_checks (started_at, ended_at, is_full, accounts, entries, open_holds, difference, findings)
     values ($1, $1, false, 1, 1, 0, '0.000001', '[{"rule":"x"}]')`,
    [now()],
  );
  server.mails.length = 0;
  const send = () => Promise.reject(new TypeError('a mistake'));
  await runServiceAlerts({ ...test.app, guard: { ...test.app.guard, send } }, signal);
  expect(server.mails.map(({ subject }) => subject.replace(/ in .*/, ''))).toEqual([
    'The books do not add up',
    `Models end on ${end}`,
  ]);
  expect(await look(6 * minute)).toEqual(['opened books critical', 'opened model_retiring warning']);
});

it('without addresses in medley.yaml, operators with a proved one get the mails', async () => {
  const end = day(20);
  await test.configure(settings('{}') + models(end));
  expect(await look(0)).toEqual([]);
  for (const [id, email, is_proved] of [
    ['user_a', 'proved@example.com', true],
    ['user_b', 'claimed@example.com', false],
  ] as const) {
    await test.app.db.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt", "isOperator") values ($1, 'Op', $2, $3, $4, $4, true)`,
      [id, email, is_proved, now()],
    );
  }
  expect(await look()).toEqual([`Models end on ${end}`]);
  expect(server.mails.map(({ to }) => to)).toEqual([['proved@example.com']]);
});

it('a configuration with a secret of another form is refused, and the running one stays', async () => {
  const file = test.app.config.config_file ?? '';
  vi.stubEnv('ALERT_SECRET', 'hunter2');
  writeFileSync(file, usual);
  const { ok, message } = await test.app.catalog.reload();
  vi.stubEnv('ALERT_SECRET', secret);
  expect([ok, message]).toEqual([false, expect.stringContaining('alerts.webhook_secret')]);
  expect(message).not.toContain('hunter2');
  expect(test.app.catalog.current.settings.alerts.webhook).toBeDefined();
});

it('tasks and jobs that wait too long are alerts, and those of jobs pass quiet hours', async () => {
  const { account_id } = await test.client();
  const quiet = 'quiet_hours: { from: "00:00", to: "23:59" }';
  await test.configure(settings(`{ mail: [ops@example.com], ${quiet} }`));
  const client = await test.client({ account_id });
  const body = { model: 'sandbox/image', input: { prompt: 'Hello' } };
  expect((await client.call('POST', '/v1/generate', body)).status).toBe(202); // nobody works here
  expect(await look(9 * minute)).toEqual([]);
  clock.pass(2 * minute);
  await test.app.db.query(
    `update pgboss.job set created_on = created_on - interval '6 minutes', start_after = start_after - interval '6 minutes' where name = 'task.start'`,
  );
  await expect.poll(() => look(0)).toEqual(['Jobs wait']);
  expect(server.mails[0]?.text).toContain('task.start');
  await test.configure(settings('{ mail: [ops@example.com] }'));
  expect(await look(0)).toEqual(['Tasks wait']);
  expect(server.mails[0]?.text).toMatch(/The oldest of 1 queued tasks has waited 1[12] minutes/);
});
