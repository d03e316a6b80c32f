import { expect, test } from 'vitest';
import { attemptsOf, deliveryOf, finishTask } from '../webhooks/setup.ts';
import { stageOfFile } from './stage.ts';

const file = stageOfFile();

/** Lists the entries of the audit log about this account, or about the whole service, oldest first. */
async function auditEntriesOf(account_id: string | null) {
  return file.stage.app.db.query(
    `select action, subject, details from audit_entries
      where account_id is not distinct from $1 and actor = 'command line' and user_id is null order by id`,
    [account_id],
  );
}

test('changes by commands to accounts, keys and secrets are in the audit log like those of the dashboard', async () => {
  const { id } = await file.commands.ok('account', 'create', '--name', 'Studio', '--credit', '3');
  const key = await file.commands.ok('key', 'create', '--account', id, '--name', 'CI', '--monthly-limit', '5');
  await file.commands.ok('key', 'limit', key.id, 'none');
  const rotated = await file.commands.ok('key', 'rotate', key.id, '--overlap', '0');
  await file.commands.ok('key', 'delete', rotated.id);
  await file.commands.ok('account', 'block', id);
  await file.commands.ok('account', 'unblock', id);
  await file.commands.ok('account', 'credit', id, '2', '--reason', 'a gift', '--ref', 'g-1');
  await file.commands.ok('webhook', 'rotate', '--account', id);
  await file.commands.ok('login-link', '--account', id);
  const owner = expect.stringMatching(/^user_/);
  expect(await auditEntriesOf(id)).toEqual([
    { action: 'account.create', subject: id, details: { name: 'Studio', currency: 'USD', credit: '3.000000' } },
    { action: 'key.create', subject: key.id, details: { name: 'CI', limit: '5.000000', project: 'default' } },
    { action: 'key.change', subject: key.id, details: { limit: null } },
    { action: 'key.rotate', subject: key.id, details: { new_key: rotated.id, overlap_hours: 0 } },
    { action: 'key.delete', subject: rotated.id, details: { name: 'CI' } },
    { action: 'account.block', subject: id, details: null },
    { action: 'account.unblock', subject: id, details: null },
    { action: 'account.credit', subject: id, details: { amount: '2.000000', reason: 'a gift', ref: 'g-1' } },
    { action: 'webhook_secret.rotate', subject: null, details: null },
    { action: 'login_link.create', subject: owner, details: null },
  ]);
  await Promise.all([
    file.commands.fails(1, 'key', 'delete', rotated.id),
    file.commands.fails(1, 'key', 'limit', 'key_no', '5'),
    file.commands.fails(1, 'account', 'block', 'acct_no'),
  ]);
  expect(await auditEntriesOf(id)).toHaveLength(10);
  expect(JSON.stringify(await auditEntriesOf(id))).not.toMatch(/mdl_|whsec_|token=/);
});

test('changes by commands to tasks and deliveries are in the audit log', async () => {
  const { receiver, client, app } = file.stage;
  const { account_id } = client;
  const { json } = await client.call('POST', '/v1/generate', {
    model: 'sandbox/image',
    input: { prompt: '[[delay 1h]]' },
  });
  await file.commands.ok('task', 'fail', json.id, '--reason', 'it hangs');
  const task = await finishTask(client, `${receiver.url}/webhook`);
  await receiver.nth('/webhook', 1);
  const delivery = await deliveryOf(app, client, task);
  await attemptsOf(app, delivery, 1);
  await file.commands.ok('webhook', 'resend', delivery.id);
  const url = `${receiver.url}/test`;
  const sent = await file.commands.ok('webhook', 'test', '--account', account_id, '--url', url);
  const released = { reason: 'it hangs', released: '0.010000', currency: 'USD' };
  expect(await auditEntriesOf(account_id)).toEqual([
    { action: 'task.fail', subject: json.id, details: released },
    { action: 'webhook.resend', subject: delivery.id, details: null },
    { action: 'webhook.test', subject: sent.id, details: { url } },
  ]);
});

test('changes that concern the whole service are in the audit log without an account', async () => {
  // A command waits for five seconds, and writes nothing down without an answer: a busy service may be later.
  await expect.poll(async () => (await file.commands.text('reload')).code).toBe(0);
  await file.commands.ok('login-link');
  const operator = expect.stringMatching(/^user_/);
  expect(await auditEntriesOf(null)).toEqual([
    { action: 'configuration.reload', subject: null, details: { ok: true } },
    { action: 'login_link.create', subject: operator, details: null },
  ]);
});
