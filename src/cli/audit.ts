import { createWriteStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { CommandApp } from '../app/command-app.ts';
import { exportAudit, type AuditEntry } from '../accounts/audit.ts';
import { audit_columns, auditLines, auditRows } from '../dashboard/audit.ts';
import { csvChunks } from '../dashboard/csv.ts';
import { counted } from '../lib/counted.ts';
import { requireAccount } from './account.ts';
import { CommandError, says, withApp, type CommandResult } from './command.ts';

type Options = { account?: string; from?: string; to?: string };

export function auditCommands(audit: Command): void {
  const command = audit
    .command('export <file>')
    .description('write the audit log to a new file: .csv for spreadsheets, or .jsonl');
  command.option('--account <account>', 'only of this account');
  command.option('--from <time>', 'since this time, such as 2026-01-31');
  command.option('--to <time>', 'before this time');
  says(command, (file = '') => withApp((app) => exportTo(app, file, command.opts<Options>())));
}

async function exportTo(app: CommandApp, path: string, options: Options): Promise<CommandResult> {
  const is_csv = path.endsWith('.csv');
  if (!is_csv && !path.endsWith('.jsonl'))
    throw new CommandError('The name of the file must end with .csv or .jsonl.', 2);
  const [from, to] = [timeOf('--from', options.from), timeOf('--to', options.to)];
  const account_id = options.account === undefined ? undefined : (await requireAccount(app, options.account)).id;
  const filter = { ...(account_id !== undefined && { account_id }), ...(from && { from }), ...(to && { to }) };
  const count = { entries: 0 };
  const entries = counting(exportAudit(app.db, filter), count);
  const chunks = is_csv ? csvChunks(audit_columns, auditRows(entries)) : auditLines(entries);
  await pipeline(Readable.from(chunks), newFile(path)).catch((error: unknown) => {
    throw new CommandError(`${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  });
  return {
    json: { entries: count.entries, file: path },
    text: `${counted(count.entries, 'entry', 'entries')} of the audit log written to ${path}`,
  };
}

/** A file that was not there, for nobody else's eyes, down to the disk. */
function newFile(path: string): Writable {
  return createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
}

function timeOf(option: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const is_time = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z)?$/.test(text) && !Number.isNaN(Date.parse(text));
  if (is_time) return new Date(text);
  throw new CommandError(`${option} must be a time such as 2026-01-31 or 2026-01-31T12:00:00Z, not "${text}".`, 2);
}

async function* counting(entries: AsyncIterable<AuditEntry>, count: { entries: number }): AsyncGenerator<AuditEntry> {
  for await (const entry of entries) {
    count.entries++;
    yield entry;
  }
}
