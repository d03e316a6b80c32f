import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { freePort } from '../helpers/free-port.ts';
import { attemptsOf, deliveryOf, finishTask, until } from '../webhooks/setup.ts';
import { medley } from './medley.ts';
import { stageOfFile } from './stage.ts';

const file = stageOfFile();

test('webhook test sends a signed payload and prints how the receiver answered', async () => {
  const { receiver, client } = file.stage;
  const sent = await file.commands.ok(
    'webhook',
    'test',
    '--account',
    client.account_id,
    '--url',
    `${receiver.url}/cli`,
  );
  expect(sent).toMatchObject({ delivered: true, status: 204, error: null });
  expect(JSON.parse((await receiver.nth('/cli', 1)).body.toString())).toMatchObject({
    output: [],
    status: 'succeeded',
  });
  receiver.answer('/cli', 500);
  const result = await file.commands.text(
    'webhook',
    'test',
    '--account',
    client.account_id,
    '--url',
    `${receiver.url}/cli`,
  );
  expect(result.code).toBe(1);
  expect(result.out).toMatch(/^Not delivered: \S+ answered 500 after \d+ ms\n\nanswer 500\n$/);
});

test('webhook test refuses a forbidden address and an unknown account', async () => {
  const { client } = file.stage;
  const refused = await file.commands.fails(
    2,
    'webhook',
    'test',
    '--account',
    client.account_id,
    '--url',
    'http://10.0.0.1/',
  );
  expect(refused).toMatch(/^--url must be reachable from the internet/);
  expect(await file.commands.fails(1, 'webhook', 'test', '--account', 'acct_no', '--url', 'http://x.y/')).toContain(
    'acct_no',
  );
  expect(await file.commands.fails(1, 'webhook', 'rotate', '--account', 'acct_no')).toContain('acct_no');
  expect(await file.commands.fails(1, 'webhook', 'resend', 'dlv_no')).toContain('There is no delivery "dlv_no"');
  expect(await file.commands.fails(2, 'webhook', 'listen', '--port', 'x')).toContain('--port');
});

test('webhook resend sends a delivery again, and task show prints its attempts', async () => {
  const { receiver, client, app } = file.stage;
  const task = await finishTask(client, `${receiver.url}/resend`);
  await receiver.nth('/resend', 1);
  const delivery = await deliveryOf(app, client, task);
  await attemptsOf(app, delivery, 1);
  expect(await file.commands.ok('webhook', 'resend', delivery.id)).toMatchObject({ id: delivery.id, state: 'waiting' });
  await receiver.nth('/resend', 2);
  await attemptsOf(app, delivery, 2);
  expect(await file.commands.ok('task', 'show', task)).toMatchObject({
    webhook: { id: delivery.id, state: 'delivered', attempts: [{ status: 204 }, { status: 204 }] },
  });
  const result = await file.commands.text('task', 'show', task);
  expect(result.out).toMatch(/webhook +dlv_\S+ delivered: http/);
  expect(result.out).toMatch(/attempt 2 +204 after \d+ ms/);
});

test('webhook rotate prints the new secret', async () => {
  const { client } = file.stage;
  const { webhook_secret: before } = await file.commands.ok('account', 'show', client.account_id);
  const { webhook_secret } = await file.commands.ok('webhook', 'rotate', '--account', client.account_id);
  expect(webhook_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(webhook_secret).not.toBe(before);
});

test('webhook listen receives webhooks, verifies them with the secret of the account, and prints them', async () => {
  const { client, app } = file.stage;
  const port = await freePort();
  const { database_url = '', data_dir } = app.config;
  const env = { DATABASE_URL: database_url, MEDLEY_DATA: data_dir };
  const listening = medley(['webhook', 'listen', '--port', String(port), '--count', '2', '--json'], env);
  const url = `http://127.0.0.1:${port}/hook`;
  await until('it listens', () =>
    fetch(url, { method: 'POST', body: 'forged' }).then(
      (response) => response.status === 401,
      () => false,
    ),
  );
  await sendHalf(port);
  const task = await finishTask(client, url);
  const output = await listening;
  expect(output.code, output.error).toBe(0);
  expect(JSON.parse(output.out)).toMatchObject({
    received: [
      { verified: false, body: 'forged' },
      { verified: true, event: 'task.failed', body: { id: task, status: 'failed' } },
    ],
  });
});

test('webhook listen verifies what comes to an endpoint with the secret of the endpoint', async () => {
  const { client, app } = file.stage;
  const port = await freePort();
  const { database_url = '', data_dir } = app.config;
  const env = { DATABASE_URL: database_url, MEDLEY_DATA: data_dir };
  const listening = medley(['webhook', 'listen', '--port', String(port), '--count', '2', '--json'], env);
  const url = `http://127.0.0.1:${port}/hook`;
  const { json: endpoint } = await client.call('POST', '/v1/webhook_endpoints', { url, events: ['task.*'] });
  await until('it listens', () =>
    fetch(url, { method: 'POST', body: 'forged' }).then(
      (response) => response.status === 401,
      () => false,
    ),
  );
  await client.call('POST', `/v1/webhook_endpoints/${endpoint.id}/test`, { event: 'balance.low' });
  const { code, out, error } = await listening;
  expect(code, error).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    received: [{ verified: false }, { verified: true, event: 'balance.low', body: { type: 'balance.low' } }],
  });
  await client.call('DELETE', `/v1/webhook_endpoints/${endpoint.id}`);
});

/** A sender that goes away in the middle of its request. */
async function sendHalf(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n12345');
  await once(socket, 'data'); // it is being read
  socket.destroy();
}
