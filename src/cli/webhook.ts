import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { Command } from 'commander';
import { findAccount, rotateWebhookSecret, type Account } from '../accounts/accounts.ts';
import type { CommandApp } from '../app/command-app.ts';
import { withDatabase } from '../app/data.ts';
import { readCommandConfig } from '../app/running.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import { checkUserUrl } from '../net/address.ts';
import { isId } from '../lib/ids.ts';
import { testBody } from '../tasks/task.ts';
import { resend, sendTest, type ManualSendParts } from '../webhooks/manual.ts';
import { findDelivery } from '../webhooks/delivery.ts';
import { hasSignature } from '../webhooks/sign.ts';
import { requireAccount as foundAccount } from './account.ts';
import { CommandError, note, says, withApp, withEngine, type CommandResult } from './command.ts';

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
  await note(app, { account_id: account.id, action: 'webhook_secret.rotate' });
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
  await note(app, { account_id: delivery?.account_id, action: 'webhook.resend', subject: id });
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
  await note(app, { account_id: account.id, action: 'webhook.test', subject: id, details: { url } });
  const outcome = status === null ? `no response: ${error}` : `answered ${status}`;
  const text = `${delivered ? 'Delivered' : 'Not delivered'}: ${url} ${outcome} after ${duration_ms} ms${answer ? `\n\n${answer}` : ''}`;
  return { json: { id, delivered, status, error, duration_ms, answer }, text, exit_code: delivered ? 0 : 1 };
}

type Received = { delivery: string; event: string; verified: boolean; body: unknown };

/**
 * Receives until `--count` or a signal; each delivery is verified with the secret of its account. Of the database it
 * keeps nothing meanwhile: the service may start after it, and stop before.
 */
async function listenFor(options: { port?: string; count?: string; json?: boolean }): Promise<CommandResult> {
  const say = options.json ? () => {} : (text: string) => console.log(text);
  const port = wholeNumber(options.port, '--port', 1, 65_535);
  const count =
    options.count === undefined ? Number.POSITIVE_INFINITY : wholeNumber(options.count, '--count', 1, 1_000_000);
  const received: Received[] = [];
  const { promise: enough, resolve: stop } = Promise.withResolvers<void>();
  const lookups = new Semaphore({ name: 'lookups', bound: 2 }); // each is a connection, which the service must not lack
  const server = createServer((request, response) => {
    const take = (one: Received) => {
      response.writeHead(one.verified ? 204 : 401).end();
      received.push(one);
      say(line(one));
      if (received.length >= count) stop();
    };
    const lose = (error: Error) => {
      response.destroy();
      say(`A request was lost: ${error.message}`);
    };
    receive(request, lookups).then(take, lose);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  say(
    `Give http://127.0.0.1:${port}/ as webhook_url. The service must allow it: MEDLEY_ALLOW_PRIVATE=1, or net.allow.`,
  );
  process.once('SIGINT', stop).once('SIGTERM', stop);
  await enough;
  server.closeAllConnections();
  server.close();
  const verified = received.filter((one) => one.verified).length;
  return { json: { received }, text: `${received.length} received, ${verified} verified` };
}

async function receive(request: IncomingMessage, lookups: Semaphore): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const header = (name: string) => String(request.headers[name] ?? '');
  const delivery = header('x-service-delivery');
  const account = isId('dlv', delivery) ? await lookups.run('', () => receiverOf(delivery)) : undefined;
  const verified = account !== undefined && hasSignature(bytes, header('x-service-signature'), account.webhook_secret);
  return { delivery, event: header('x-service-event'), verified, body: asJson(bytes) };
}

/** Returns the account of a delivery. */
async function receiverOf(delivery: string): Promise<Account | undefined> {
  return withDatabase(readCommandConfig(), async (db) => {
    const row = await findDelivery(db, delivery);
    return row && findAccount(db, row.account_id);
  });
}

function asJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return bytes.toString();
  }
}

function line({ delivery, event, verified, body }: Received): string {
  return `${new Date().toISOString()}  ${verified ? 'verified' : 'NOT VERIFIED'}  ${event}  ${delivery}  ${JSON.stringify(body)}`;
}

function wholeNumber(text: string | undefined, name: string, min: number, max: number): number {
  const value = /^\d{1,7}$/.test(text ?? '') ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new CommandError(`${name} must be a whole number from ${min} to ${max}; not "${text}".`, 2);
}
