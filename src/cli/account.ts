import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import {
  createAccount,
  deleteAccount,
  findAccount,
  listAccounts,
  renameAccount,
  searchAccounts,
  setAccountStatus,
  setKeepsResponses,
  undeletable,
  type Account,
} from '../accounts/accounts.ts';
import { audit } from '../accounts/audit.ts';
import { keys_channel } from '../app/channels.ts';
import type { CommandApp } from '../app/command-app.ts';
import { deleteAllBackground } from '../conversations/background.ts';
import { deleteConversations } from '../conversations/conversations.ts';
import { removePlayground } from '../contents/playground.ts';
import { deleteContents } from '../contents/stored.ts';
import { deleteResponses } from '../conversations/stored-responses.ts';
import type { Queryable } from '../db/database.ts';
import { nearest } from '../lib/edit-distance.ts';
import { whileLeased } from '../leases/while-leased.ts';
import { balanceOf, creditManually, type Balance, type ManualCreditAnswer } from '../money/ledger.ts';
import { exact, money_max } from '../money/money.ts';
import { exportAccount } from './account-export.ts';
import {
  CommandError,
  auditCommand,
  readMoney,
  readText,
  says,
  table,
  withApp,
  type CommandResult,
} from './command.ts';
import { publishTopUp } from '../webhooks/events.ts';

export function accountCommands(account: Command): void {
  const create = account.command('create').description('create an account').requiredOption('--name <name>', 'its name');
  create.option('--currency <code>', 'its billing currency').option('--credit <amount>', 'a first top-up', '0');
  says(create, () => withApp((app) => createOne(app, create.opts())));

  const top_up = account
    .command('credit <account> <amount>')
    .description('top up (or, with a minus, correct) a balance');
  top_up
    .requiredOption('--reason <text>', 'the reason, for the ledger')
    .option('--ref <unique>', 'booked once per reference');
  says(top_up, (id = '', amount = '') => withApp((app) => creditOne(app, id, amount, top_up.opts())));

  says(account.command('list').description('all accounts with their balances'), () => withApp(listAll));
  says(account.command('show <account>').description('one account'), (id = '') => withApp((app) => showOne(app, id)));
  says(account.command('rename <account> <name>').description('give an account another name'), (id = '', name = '') =>
    withApp((app) => renameOne(app, id, name)),
  );
  for (const [verb, status] of [
    ['block', 'blocked'],
    ['unblock', 'active'],
  ] as const) {
    const command = account
      .command(`${verb} <account>`)
      .description(status === 'blocked' ? 'stop new work; running work continues' : 'allow new work again');
    says(command, (id = '') => withApp((app) => setStatus(app, id, status)));
  }
  says(
    account
      .command('responses <account> <on|off>')
      .description('store its responses and contents of calls, or none and delete those that are there'),
    (id = '', word = '') => withApp((app) => keepResponses(app, id, word)),
  );
  says(
    account
      .command('export <account> <file>')
      .description('write its stored responses, conversations, contents of calls and feedback to a new file'),
    (id = '', file = '') => withApp(async (app) => exportAccount(app, (await requireAccount(app, id)).id, file)),
  );
  says(account.command('delete <account>').description('delete one that never had money or work'), (id = '') =>
    withApp((app) => deleteOne(app, id)),
  );
}

const name_length_max = 200;

async function createOne(
  app: CommandApp,
  options: { name?: string; currency?: string; credit?: string },
): Promise<CommandResult> {
  const { currencies, base_currency } = (await app.catalog()).settings;
  const currency = options.currency ?? base_currency;
  if (!currencies.has(currency)) {
    const near = nearest(currency, [...currencies.keys()]);
    throw new CommandError(
      `${currency} is not a configured currency (${[...currencies.keys()].join(', ')}).${near ? ` Did you mean ${near}?` : ''}`,
      2,
    );
  }
  const name = readText(options.name, '--name', name_length_max);
  const initial_credit = readMoney(options.credit ?? '0', '--credit');
  const account = await createAccount(app.db, { name, currency, initial_credit }, new Date(app.clock.now()));
  const details = { name, currency, credit: exact(initial_credit) };
  await auditCommand(app, { account_id: account.id, action: 'account.create', subject: account.id, details });
  const json = { ...(await described(app, account)), webhook_secret: account.webhook_secret };
  return { json, text: `${account.id}\nbalance ${json.balance} ${currency}\nwebhook secret ${account.webhook_secret}` };
}

async function creditOne(
  app: CommandApp,
  id: string,
  amount_text: string,
  options: { reason?: string; ref?: string },
): Promise<CommandResult> {
  const amount = readMoney(amount_text, 'AMOUNT', { signed: true });
  if (amount === 0n) throw new CommandError('AMOUNT must not be zero.', 2);
  const reason = readText(options.reason, '--reason', 500);
  const ref = options.ref === undefined ? randomUUID() : readText(options.ref, '--ref', 255);
  const account = await requireAccount(app, id);
  const type = amount > 0n ? 'topup' : 'adjustment';
  const now = new Date(app.clock.now());
  const answer = await whileLeased(() =>
    app.db.tx(async (tx) => {
      const booked = await creditManually(tx, { account_id: account.id, type, amount, ref, reason }, now);
      const audit_entry = { account_id: account.id, action: 'account.credit', subject: account.id };
      const details = { amount: exact(amount), reason, ref };
      if (booked.outcome === 'booked') await audit(tx, { ...audit_entry, details, now });
      if (booked.outcome === 'booked' && type === 'topup')
        await publishTopUp(tx, account, { amount, available: booked.available, ref }, now);
      return booked;
    }),
  );
  const refusal = refusalOf(answer, account, ref);
  if (refusal !== undefined) throw new CommandError(`${refusal} Nothing was booked.`);
  const json = { ...(await described(app, account)), booked: answer.outcome === 'booked' };
  const hint = answer.outcome === 'exists' ? ' (this --ref was booked before, nothing was booked now)' : '';
  return { json, text: `balance ${json.balance} ${account.currency}${hint}` };
}

/** Returns the reason why nothing was booked; undefined if it was, now or earlier with the same reference. */
function refusalOf({ outcome, available }: ManualCreditAnswer, account: Account, ref: string): string | undefined {
  switch (outcome) {
    case 'booked':
    case 'exists':
      return undefined;
    case 'conflict':
      return `--ref ${ref} was booked before, with another amount.`;
    case 'elsewhere':
      return `--ref ${ref} was booked before, for another account.`;
    case 'insufficient':
      return `Only ${exact(available)} ${account.currency} is available.`;
    case 'leased':
      return 'The service has reserved the money for calls. Try again in a few seconds.';
    case 'too_large':
      return `The account would have more than ${exact(money_max)} ${account.currency}.`;
  }
}

async function listAll(app: CommandApp): Promise<CommandResult> {
  const accounts = await Promise.all((await listAccounts(app.db)).map((account) => described(app, account)));
  const rows = accounts.map((row) => [row.id, row.name, row.currency, row.balance, row.held, row.status]);
  return { json: { accounts }, text: table([['account', 'name', 'currency', 'balance', 'held', 'status'], ...rows]) };
}

async function showOne(app: CommandApp, id: string): Promise<CommandResult> {
  const json = await described(app, await requireAccount(app, id));
  return {
    json,
    text: Object.entries(json)
      .map(([name, value]) => `${name.padEnd(10)}  ${value}`)
      .join('\n'),
  };
}

async function renameOne(app: CommandApp, account_id: string, text: string): Promise<CommandResult> {
  const name = readText(text.trim(), 'NAME', name_length_max);
  const { id } = await requireAccount(app, account_id);
  const before = await renameAccount(app.db, id, name);
  await auditCommand(app, {
    account_id: id,
    action: 'account.rename',
    subject: id,
    details: { name, name_before: before },
  });
  return { json: { id, name }, text: `${id} is named ${name}` };
}

async function setStatus(app: CommandApp, id: string, status: Account['status']): Promise<CommandResult> {
  await requireAccount(app, id);
  await setAccountStatus(app.db, id, status);
  app.notifier.notify(keys_channel, 'all');
  await auditCommand(app, {
    account_id: id,
    action: status === 'blocked' ? 'account.block' : 'account.unblock',
    subject: id,
  });
  const json = await described(app, await requireAccount(app, id));
  return { json, text: `${id} is ${json.status}` };
}

async function keepResponses(app: CommandApp, id: string, word: string): Promise<CommandResult> {
  if (word !== 'on' && word !== 'off') throw new CommandError(`"${word}" must be on or off.`, 2);
  await requireAccount(app, id);
  await setKeepsResponses(app.db, id, word === 'on');
  app.notifier.notify(keys_channel, 'all');
  const deleted = word === 'off' ? await deleteStored(app, id) : 0;
  if (word === 'off') {
    await deleteAllBackground(app, id);
    await removePlayground(app.db, { account_id: id });
  }
  await auditCommand(app, {
    account_id: id,
    action: 'account.responses',
    subject: id,
    details: { responses: word, deleted },
  });
  return { json: { id, responses: word, deleted }, text: `responses of ${id} are ${word}; ${deleted} deleted` };
}

async function deleteStored(app: CommandApp, id: string): Promise<number> {
  const of_calls = await deleteContents(app.db, { account_id: id });
  return of_calls + (await deleteResponses(app, id)) + (await deleteConversations(app, id));
}

async function deleteOne(app: CommandApp, id: string): Promise<CommandResult> {
  const { name, currency } = await requireAccount(app, id);
  const outcome = await deleteAccount(app.db, id);
  if (outcome === 'money' || outcome === 'history')
    throw new CommandError(
      `${undeletable[outcome]} "medley account block ${id}" stops new work, and "medley account responses ${id} off" deletes the responses, conversations and contents of calls that are stored for it.`,
    );
  app.notifier.notify(keys_channel, 'all');
  await auditCommand(app, { account_id: id, action: 'account.delete', subject: id, details: { name, currency } });
  return { json: { id, deleted: true }, text: `${id} is deleted` };
}

/** The account, or a CommandError that says so. */
export async function requireAccount(app: { db: Queryable }, id: string): Promise<Account> {
  const account = await findAccount(app.db, id);
  if (account) return account;
  const [alike, ...more] = await searchAccounts(app.db, { search: id, after: undefined, limit: 2 });
  const hint =
    alike && more.length === 0 ? `Do you mean ${alike.id} (${alike.name})?` : '"medley account list" shows them.';
  throw new CommandError(`There is no account "${id}". ${hint}`);
}

async function described(app: CommandApp, account: Account) {
  const balance: Balance | undefined = await balanceOf(app.db, account.id);
  const { amount, held } = balance ?? { amount: 0n, held: 0n };
  return {
    id: account.id,
    name: account.name,
    currency: account.currency,
    status: account.status,
    balance: exact(amount),
    held: exact(held),
    available: exact(amount - held),
    created_at: account.created_at.toISOString(),
  };
}
