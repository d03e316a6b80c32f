import { afterAll, beforeAll, expect, test } from 'vitest';
import { render } from '../../src/metrics/registry.ts';
import { openReading } from '../../src/monitoring/scrape.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';

let service: TestApp;

beforeAll(async () => {
  service = await startTestApp({ worker: false }); // whose jobs have series of their own, as they come and go
});
afterAll(() => service.stop());

/** The series of the process and of the service, each with its labels. */
async function seriesNow(): Promise<string[]> {
  const text = render(await openReading(service.app)());
  // A queue has series while it has jobs.
  const lines = text.split('\n').filter((line) => line !== '' && !/^(?:#|medley_job)/.test(line));
  return lines.map((line) => line.slice(0, line.lastIndexOf(' '))).toSorted();
}

async function callAsNewAccount(): Promise<void> {
  const client = await service.client();
  const messages = [{ role: 'user', content: 'Hello' }];
  const body = { model: 'sandbox/chat', max_tokens: 5, messages, user: client.account_id };
  expect((await client.call('POST', '/v1/chat/completions', body)).status).toBe(200);
  expect((await client.call('GET', `/v1/tasks/task_${client.key_id}`)).status).toBe(404);
  expect((await client.call('GET', `/v1/${client.account_id}`)).status).toBe(404);
}

test('10,000 accounts with circuits and alerts of their own have the series of one', async () => {
  const { db, clock } = service.app;
  const at = [new Date(clock.now())];
  await callAsNewAccount();
  await service.app.health.noteFailure('some/model#1', 'acct_0', { cause: 'timeout', pause_ms: 600_000 });
  // Calls and requests are counted behind their answers, and a database that is slow is left out of a reading.
  const counted = ['medley_chat_calls_total{', '/v1/tasks/{id}",status="404"', 'route="none",status="404"'];
  let of_one: string[] = [];
  const missing = async () => {
    of_one = await seriesNow();
    const text = of_one.join('\n');
    return [...counted, 'medley_accounts_below_alert'].filter((part) => !text.includes(part));
  };
  await expect.poll(missing).toEqual([]);
  await db.query(
    `insert into accounts (id, name, currency, status, webhook_secret, created_at)
     select 'acct_many_' || i, 'Many ' || i, 'USD', 'active', 'whsec_', $1 from generate_series(1, 10000) i`,
    at,
  );
  await db.query(
    `insert into balances (account_id, currency) select id, 'USD' from accounts where id like 'acct_many_%'`,
  );
  await db.query(
    `insert into balance_alerts (account_id, threshold, updated_at)
     select id, 1000000, $1 from accounts where id like 'acct_many_%'`,
    at,
  );
  await db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at, account_id)
     select 'many/model#1', 'timeout', 1, $1, $1::timestamptz + interval '1 hour', id from accounts where id like 'acct_many_%'`,
    at,
  );
  for (let count = 0; count < 25; count++) await callAsNewAccount();
  const textNow = async () => render(await openReading(service.app)());
  await expect.poll(textNow).toContain('\nmedley_accounts_below_alert 10000\n');
  await expect.poll(textNow).toContain('\nmedley_account_circuits_open 1000\n');
  await expect.poll(seriesNow).toEqual(of_one);
  expect(of_one.length).toBeLessThan(300);
});
