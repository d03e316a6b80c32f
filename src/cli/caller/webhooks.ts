import type { Command } from 'commander';
import {
  verifyWebhook,
  WebhookError,
  type WebhookEndpoint,
  type WebhookHeaders,
} from '../../../clients/typescript/src/index.ts';
import { CommandError, says, table, type CommandResult } from '../result.ts';
import {
  listenResult,
  readListenOptions,
  startListener,
  type ListenOptions,
  type Webhook,
} from '../webhook-listener.ts';
import { readTime } from './read-time.ts';
import { takesService, withService, type Service } from './service.ts';
import { interruptible, oneLine } from './terminal.ts';
import { eventIn, eventsIn, fieldsIn, takesFields, type FieldOptions } from './webhook-fields.ts';

/** Endpoints of one's own account, which get its events. */
export function webhooksCommands(webhooks: Command): void {
  const list = webhooks.command('list', { isDefault: true }).description('the endpoints of the account');
  of(list, ({ client }, _words, signal) => listEndpoints(client, signal));
  of(webhooks.command('show <endpoint>').description('one endpoint'), async ({ client }, [id], signal) => {
    const endpoint = await client.webhook_endpoints.get(id, { signal });
    return { json: endpoint, text: describe(endpoint) };
  });
  changingCommands(webhooks);
  sendingCommands(webhooks);
  listenCommand(webhooks);
}

function changingCommands(webhooks: Command): void {
  const create = webhooks.command('create <address>').description('register an address for events');
  create.requiredOption('--events <types>', 'such as task.*,balance.low, or * for all');
  of(takesFields(create), async ({ client }, [url], signal) => {
    const options: FieldOptions = create.opts();
    const fields = { ...fieldsIn(options), url, events: eventsIn(options.events ?? '') };
    const endpoint = await client.webhook_endpoints.create(fields, { signal });
    return { json: endpoint, text: secretText(endpoint) };
  });
  const change = webhooks.command('change <endpoint>').description('change an endpoint: what is not named stays');
  change.option('--address <address>', 'where events go').option('--events <types>', 'such as task.*,balance.low');
  of(takesFields(change).option('--enable', 'send events again'), async ({ client }, [id], signal) => {
    const fields = fieldsIn(change.opts());
    if (Object.keys(fields).length === 0)
      throw new CommandError('Name something to change; "medley webhooks change --help" lists it.', 2);
    const endpoint = await client.webhook_endpoints.update(id, fields, { signal });
    return { json: endpoint, text: describe(endpoint) };
  });
  const rotate = webhooks
    .command('rotate <endpoint>')
    .description('a new secret; the previous one signs too for a day');
  of(rotate, async ({ client }, [id], signal) => {
    const endpoint = await client.webhook_endpoints.rotateSecret(id, { signal });
    return { json: endpoint, text: secretText(endpoint) };
  });
  of(webhooks.command('delete <endpoint>').description('delete an endpoint'), async ({ client }, [id], signal) => {
    await client.webhook_endpoints.delete(id, { signal });
    return { json: { id, deleted: true }, text: `The endpoint ${oneLine(id, 60)} is deleted.` };
  });
}

type ReplayOptions = { from: string; to?: string; all?: boolean; dryRun?: boolean };

function sendingCommands(webhooks: Command): void {
  const test = webhooks
    .command('test <endpoint> [event]')
    .description('send an example of an event and show the answer');
  of(test, async ({ client }, [id, event = 'task.succeeded'], signal) => {
    const sent = await client.webhook_endpoints.test(id, eventIn(event), { signal });
    const { delivered, status, error, duration_ms, answer } = sent;
    const outcome = status === null ? `no response: ${error}` : `the receiver answered ${status}`;
    const text = `${delivered ? 'Delivered' : 'Not delivered'}: ${outcome} after ${duration_ms} ms`;
    const shown = answer ? `\n\n${oneLine(answer, 2_000)}` : '';
    return { json: sent, text: `${oneLine(text)}${shown}`, exit_code: delivered ? 0 : 1 };
  });
  const replay = webhooks
    .command('replay <endpoint>')
    .description('send events of a span again: those that did not arrive');
  replay
    .requiredOption('--from <when>', 'a time, or how long ago, such as 24h')
    .option('--to <when>', 'the same; now unless set')
    .option('--all', 'those that arrived, too')
    .option('--dry-run', 'only count them, up to 1,000');
  of(replay, (service, [id], signal) => replayAll(service, id, replay.opts(), signal));
}

/** One call sends 1,000 events at most: the rest follows in further calls. */
async function replayAll(
  { client }: Service,
  id: string,
  { from, to, all = false, dryRun: dry_run = false }: ReplayOptions,
  signal: AbortSignal,
): Promise<CommandResult> {
  const end = to === undefined ? undefined : readTime('--to', to);
  const span = { to: end, which: all ? 'all' : 'failed', dry_run, signal } as const;
  let events = 0;
  for (let next: string | Date | undefined = readTime('--from', from); ;) {
    const sent = await client.webhook_endpoints.replay(id, { ...span, from: next });
    events += sent.events;
    next = sent.next_from ?? undefined;
    if (dry_run || next === undefined || sent.events === 0) {
      const has_more = next !== undefined;
      const text = `Events ${dry_run ? 'to send' : 'that are sent'} again: ${events}${has_more ? ', and more' : ''}`;
      return { json: { id, events, has_more, dry_run }, text };
    }
  }
}

/** Its endpoint is there only while it listens. */
function listenCommand(webhooks: Command): void {
  const listen = webhooks.command('listen').description('receive events on this machine, verify and print them');
  listen
    .option('--events <types>', 'such as task.*,balance.low', '*')
    .option('--port <port>', 'on 127.0.0.1; any that is free unless set')
    .option('--address <address>', 'a public address that leads to the port, for a service elsewhere')
    .option('--count <n>', 'stop after this many');
  of(listen, (service, _words, signal) => listenFor(service, listen.opts(), signal));
}

async function listenFor(
  { client }: Service,
  options: ListenOptions & { events: string; address?: string },
  signal: AbortSignal,
): Promise<CommandResult> {
  const { say, ...chosen } = readListenOptions(options);
  const events = eventsIn(options.events);
  const registered = Promise.withResolvers<string>(); // the first event may come before the answer that has the secret
  const verify = async ({ bytes, headers }: Webhook) => isGenuine(bytes, headers, await registered.promise);
  const listener = await startListener({ ...chosen, say, verify });
  const fields = { url: options.address ?? listener.url, events, description: 'medley webhooks listen' };
  const endpoint = await client.webhook_endpoints.create(fields, { signal }).catch(async (error: unknown) => {
    await listener.until(AbortSignal.abort());
    throw error;
  });
  registered.resolve(endpoint.secret);
  say(`${endpoint.id} sends ${events.join(', ')} to ${endpoint.url} until Ctrl-C.`);
  const received = await listener.until(signal);
  await client.webhook_endpoints.delete(endpoint.id).catch((error: unknown) => {
    console.error(`The endpoint is still there: medley webhooks delete ${oneLine(endpoint.id, 60)}`);
    throw error;
  });
  return listenResult(received);
}

async function isGenuine(bytes: Buffer, headers: WebhookHeaders, secret: string): Promise<boolean> {
  try {
    await verifyWebhook(bytes, headers, secret);
    return true;
  } catch (error) {
    if (error instanceof WebhookError) return false;
    throw error;
  }
}

type Work = (service: Service, words: readonly [string, string?], signal: AbortSignal) => Promise<CommandResult>;

function of(command: Command, work: Work): void {
  says(takesService(command), (id = '', word) =>
    interruptible((signal) => {
      const { url }: { url?: string } = command.opts();
      return withService(url, (service) => work(service, [id, word], signal));
    }),
  );
}

async function listEndpoints(client: Service['client'], signal: AbortSignal): Promise<CommandResult> {
  const endpoints = await client.webhook_endpoints.list({ limit: 100 }, { signal }).take(listed_max);
  const rows = endpoints.map((endpoint) => [endpoint.id, stateOf(endpoint), endpoint.events.join(','), endpoint.url]);
  const shown = rows.map((row) => row.map((cell) => oneLine(cell, 200)));
  const text =
    rows.length === 0 ? 'There are no endpoints.' : table([['ENDPOINT', 'STATE', 'EVENTS', 'ADDRESS'], ...shown]);
  return { json: { endpoints }, text };
}

const listed_max = 1_000;

function stateOf({ enabled, disabled_reason, failing_since }: WebhookEndpoint): string {
  if (!enabled) return `disabled: ${disabled_reason}`;
  return failing_since === null ? 'enabled' : 'failing';
}

function secretText(endpoint: WebhookEndpoint & { secret: string }): string {
  return `${describe(endpoint)}\n\n${oneLine(endpoint.secret)}\nThis is its secret. Shown only once.`;
}

function describe(endpoint: WebhookEndpoint): string {
  const { filters, failing_since, last_delivered_at, previous_secret_until } = endpoint;
  const { models = [], keys = [], metadata = {} } = filters;
  const rows = [
    ['Endpoint', endpoint.id],
    ['Address', endpoint.url],
    ['State', stateOf(endpoint)],
    ['Events', endpoint.events.join(', ')],
    ...(endpoint.description === '' ? [] : [['Description', endpoint.description]]),
    ...(models.length === 0 ? [] : [['Models', models.join(', ')]]),
    ...(keys.length === 0 ? [] : [['Keys', keys.join(', ')]]),
    ...Object.entries(metadata).map(([name, value]) => [`Metadata ${name}`, value]),
    ...(last_delivered_at === null ? [] : [['Last arrived', last_delivered_at]]),
    ...(failing_since === null ? [] : [['Failing since', failing_since]]),
    ...(previous_secret_until === null ? [] : [['Both secrets until', previous_secret_until]]),
    ['Created', endpoint.created_at],
  ];
  return table(rows.map((row) => row.map((cell) => oneLine(cell, 2_100))));
}
