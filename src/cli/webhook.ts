import type { Command } from 'commander';
import { findAccount, rotateWebhookSecret } from '../accounts/accounts.ts';
import type { CommandApp } from '../app/command-app.ts';
import { withDatabase } from '../app/data.ts';
import { readCommandConfig } from '../app/running.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { checkUserUrl } from '../net/address.ts';
import { isId } from '../lib/ids.ts';
import { testBody } from '../tasks/task.ts';
import { resend, sendTest, type ManualSendParts } from '../webhooks/manual.ts';
import { findDelivery } from '../webhooks/delivery.ts';
import { endpointSecrets, findEndpoint } from '../webhooks/endpoints.ts';
import { hasSignature } from '../webhooks/sign.ts';
import { requireAccount as foundAccount } from './account.ts';
import { CommandError, auditCommand, says, withApp, withEngine, type CommandResult } from './command.ts';
import {
  headerOf,
  listenResult,
  readListenOptions,
  startListener,
  type ListenOptions,
  type Webhook,
} from './webhook-listener.ts';

export function webhookCommands(webhook: Command): void {
  const rotate = webhook
    .command('rotate')
    .description('create a new secret; in the standard signature the old one stays valid for 24 hours');
  rotate.requiredOption('--account <account>', 'whose');
  says(rotate, () => withApp((app) => rotateSecret(app, rotate.opts())));

  says(webhook.command('resend <delivery>').description('send a delivery once more, the same bytes'), (id = '') =>
    withEngine((app) => resendOne(app, id)),
  );

  const test = webhook.command('test').description('send a signed test payload and show the answer');
  test
    .requiredOption('--account <account>', 'the account whose secret signs')
    .requiredOption('--url <url>', 'the address');
  says(test, () => withEngine((app) => testOne(app, test.opts())));

  const listen = webhook.command('listen').description('receive deliveries on this machine, verify and print them');
  listen.requiredOption('--port <port>', 'on 127.0.0.1').option('--count <n>', 'stop after this many deliveries');
  says(listen, () => listenFor(listen.opts()));
}

async function rotateSecret(app: CommandApp, options: { account?: string }): Promise<CommandResult> {
  const account = await foundAccount(app, options.account ?? '');
  const webhook_secret = await rotateWebhookSecret(app.db, account.id, new Date(app.clock.now()));
  await auditCommand(app, { account_id: account.id, action: 'webhook_secret.rotate' });
  return {
    json: { id: account.id, webhook_secret },
    text: `${webhook_secret}\n\nx-service-signature uses it from now on. In webhook-signature the old one also stays valid for 24 hours.`,
  };
}

async function resendOne(app: ManualSendParts, id: string): Promise<CommandResult> {
  const delivery = await findDelivery(app.db, id);
  const answer = delivery ? await resend(app, delivery) : 'missing';
  if (answer === 'missing')
    throw new CommandError(`There is no delivery "${id}". \`task show TASK\` lists those of a task.`);
  if (answer === 'busy')
    throw new CommandError(`${id} is being sent already: its next attempt is due now or in progress.`);
  if (answer === 'disabled') throw new CommandError(`The endpoint of ${id} is disabled or deleted.`);
  await auditCommand(app, { account_id: delivery?.account_id, action: 'webhook.resend', subject: id });
  return { json: { id, state: 'waiting' }, text: `${id} will be sent to ${delivery?.url} again` };
}

async function testOne(app: ManualSendParts, options: { account?: string; url?: string }): Promise<CommandResult> {
  const account = await foundAccount(app, options.account ?? '');
  const url = options.url ?? '';
  const problem = checkUserUrl(url, app.addressRules());
  if (problem) {
    const hint = problem.includes('private') ? ' MEDLEY_ALLOW_PRIVATE=1 or net.allow in medley.yaml allow them.' : '';
    throw new CommandError(`--url ${problem}${hint}`, 2);
  }
  const { id, status, error, duration_ms, answer, delivered } = await sendTest(
    app,
    account,
    url,
    testBody(account.currency, new Date(app.clock.now())),
  );
  await auditCommand(app, { account_id: account.id, action: 'webhook.test', subject: id, details: { url } });
  const outcome = status === null ? `no response: ${error}` : `answered ${status}`;
  const text = `${delivered ? 'Delivered' : 'Not delivered'}: ${url} ${outcome} after ${duration_ms} ms${answer ? `\n\n${answer}` : ''}`;
  return { json: { id, delivered, status, error, duration_ms, answer }, text, exit_code: delivered ? 0 : 1 };
}

/**
 * Receives until `--count` or a signal; each delivery is verified with the secret of its account, or of the endpoint to
 * which it goes. Of the database it keeps nothing meanwhile: the service may start after it, and stop before.
 */
async function listenFor(options: ListenOptions): Promise<CommandResult> {
  const lookups = new Semaphore({ name: 'lookups', bound: 2 }); // each is a connection, which the service must not lack
  const verify = async ({ bytes, headers }: Webhook) => {
    const delivery = headerOf(headers, 'x-service-delivery');
    const secret = isId('dlv', delivery) ? await lookups.run('', () => secretOf(delivery)) : undefined;
    return secret !== undefined && hasSignature(bytes, headerOf(headers, 'x-service-signature'), secret);
  };
  const { say, ...chosen } = readListenOptions(options);
  const listener = await startListener({ ...chosen, say, verify });
  say(
    `Give ${listener.url} as webhook_url, or to an endpoint. The service must allow it: MEDLEY_ALLOW_PRIVATE=1, or net.allow.`,
  );
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  return listenResult(await listener.until(controller.signal));
}

/** Returns the secret that signs a delivery; undefined if there is no such delivery, or its endpoint is gone. */
async function secretOf(delivery: string): Promise<string | undefined> {
  return withDatabase(readCommandConfig(), async (db) => {
    const row = await findDelivery(db, delivery);
    if (!row) return undefined;
    const { account_id, endpoint_id } = row;
    if (endpoint_id === null) return (await findAccount(db, account_id))?.webhook_secret;
    const endpoint = await findEndpoint(db, { account_id, id: endpoint_id });
    return endpoint && (await endpointSecrets(db, endpoint, Date.now()))[0];
  });
}
