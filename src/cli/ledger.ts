import { open, type FileHandle } from 'node:fs/promises';
import type { Command } from 'commander';
import type { CommandApp } from '../app/command-app.ts';
import { isMonth, monthBefore, periodOf } from '../billing/invoice.ts';
import { service_rules } from '../chat/books.ts';
import { hasRecordsBefore } from '../chat/sweep.ts';
import { counted } from '../lib/counted.ts';
import { closableBefore, closeLedger, entriesOf, removeClosed, type Closable } from '../money/closing.ts';
import { reconcile } from '../money/reconciliation.ts';
import { addUpUsage } from '../money/usage.ts';
import { hasTasksBefore } from '../tasks/list.ts';
import { CommandError, auditCommand, says, withApp, type CommandResult } from './command.ts';

export function ledgerCommands(ledger: Command): void {
  const close = ledger
    .command('close <month>')
    .description('write the entries of a month, and of all before it, to a file, and keep only what they come to');
  close.requiredOption('--export <file>', 'the new file, one entry as JSON per line');
  says(close, (month = '') => withApp((app) => closeMonth(app, month, String(close.opts()['export']))));
}

/** Invoices are made of the last three months. */
const months_open = 3;

async function closeMonth(app: CommandApp, month: string, file: string): Promise<CommandResult> {
  if (!isMonth(month)) throw new CommandError(`The month must be like 2026-01, not "${month}".`, 2);
  const now = new Date(app.clock.now());
  const last = monthBefore(now, months_open + 1);
  if (month > last) throw new CommandError(`${month} is too new: invoices are made of the last three months.`);
  const { to } = periodOf(month);
  if ((await hasTasksBefore(app.db, to)) || (await hasRecordsBefore(app.db, to))) {
    throw new CommandError(
      `Tasks or records of chat calls of ${month} are still there. They go when tasks.keep and retention.chat_records say.`,
    );
  }
  await addUpUsage(app.db, { behind: 1 });
  const books = await reconcile(app.db, { clock: app.clock, more: service_rules });
  if (!books.ok) throw new CommandError('The books do not add up; see the command books. Nothing was closed.');
  const closable = await closableBefore(app.db, to);
  const counts = await exportTo(app, file, closable);
  const next = to.toISOString().slice(0, 10);
  for (const one of closable) {
    const count = counts.get(one.account_id) ?? 0;
    await closeLedger(app.db, one, { month: next, count });
    await auditCommand(app, {
      account_id: one.account_id,
      action: 'ledger.close',
      details: { month, entries: count, file },
    });
  }
  const removed = await removeClosed(app.db);
  const exported = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const done = `${counted(exported, 'entry', 'entries')} of ${counted(closable.length, 'account')} up to ${month}`;
  return {
    json: { month, accounts: closable.length, exported, removed, file },
    text: `${done} written to ${file} and closed; ${removed} removed.`,
  };
}

/** Writes all of them to a file that was not there, down to the disk; answers how many there were of each account. */
async function exportTo(app: CommandApp, path: string, closable: readonly Closable[]): Promise<Map<string, number>> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    throw new CommandError(`${path} cannot be made: ${error instanceof Error ? error.message : String(error)}`);
  });
  try {
    const counts = new Map<string, number>();
    for (const one of closable) counts.set(one.account_id, await writeEntries(app, file, one));
    await file.sync();
    return counts;
  } finally {
    await file.close();
  }
}

async function writeEntries(app: CommandApp, file: FileHandle, one: Closable): Promise<number> {
  let count = 0;
  for await (const lines of entriesOf(app.db, one)) {
    await file.appendFile(`${lines.join('\n')}\n`);
    count += lines.length;
  }
  return count;
}
