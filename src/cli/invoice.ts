import type { Command } from 'commander';
import type { CommandApp } from '../app/command-app.ts';
import { isMonth, periodOf } from '../billing/invoice.ts';
import { invoiceTime, isOver, makeInvoices } from '../billing/invoices.ts';
import { requireAccount } from './account.ts';
import { CommandError, says, table, withApp, type CommandResult } from './command.ts';
import { publishInvoice } from '../webhooks/events.ts';

export function invoiceCommands(invoice: Command): void {
  const run = invoice
    .command('run')
    .description(
      'create the missing invoices of a month, and supplementary ones for later charges; the service also does this automatically',
    );
  run
    .requiredOption('--month <YYYY-MM>', 'a month (UTC) that is over')
    .option('--account <account>', 'only this account');
  says(run, () => withApp((app) => makeThem(app, run.opts())));
}

async function makeThem(app: CommandApp, options: { month?: string; account?: string }): Promise<CommandResult> {
  const { month = '' } = options;
  const now = await invoiceTime(app.db, new Date(app.clock.now()));
  const { issuer } = (await app.catalog()).settings;
  if (!isMonth(month)) throw new CommandError(`--month must be like 2026-01, not "${month}".`, 2);
  if (!isOver(month, now)) throw new CommandError(tooEarly(month), 1);
  if (!issuer) {
    throw new CommandError('There is no issuer of invoices: set billing.issuer in medley.yaml.', 1);
  }
  const account = options.account === undefined ? undefined : await requireAccount(app, options.account);
  const {
    created: invoices,
    existing,
    failed,
  } = await makeInvoices(app.db, { issuer, month, now, account_id: account?.id, onInvoice: publishInvoice });
  const created = invoices.map(({ number, customer, total, currency, supplement_to = null }) => ({
    number,
    account: customer.account_id,
    total,
    currency,
    supplement_to,
  }));
  const failures = failed.map(({ account_id, error }) => ({ account: account_id, message: messageOf(error) }));
  const text = [
    ...(created.length > 0
      ? [table([['number', 'account', 'total', '', 'supplement to'], ...created.map(lineOf)])]
      : []),
    `${invoices.length} created for ${month}, ${existing} existed already.`,
    ...failures.map((one) => `NOT CREATED for ${one.account}: ${one.message}`),
  ];
  return {
    json: { month, made: created, existing, failed: failures },
    text: text.join('\n'),
    exit_code: failures.length > 0 ? 1 : 0,
  };
}

function lineOf(names: { [name: string]: string | null }): string[] {
  return Object.values(names).map((value) => value ?? '');
}

function tooEarly(month: string): string {
  const day = periodOf(month).to.toISOString().slice(0, 10);
  return `${month} is not over: its invoices can be made from ${day} 01:00 UTC on, by the clocks of this machine and of the database.`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
