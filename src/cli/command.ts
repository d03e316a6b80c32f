import type { Command } from 'commander';
import { audit, type Deed } from '../accounts/audit.ts';
import type { App } from '../app.ts';
import { withCommandApp, type CommandApp } from '../app/command-app.ts';
import { readCommandConfig } from '../app/running.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { exact, money_max, parseMoney, type Money } from '../money/money.ts';

/** The caller's mistake in a command: told on stderr, exit code 1 (usage: 2). */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exit_code: 1 | 2;

  constructor(message: string, exit_code: 1 | 2 = 1) {
    super(message);
    this.exit_code = exit_code;
  }
}

/** The output of a command: an object for --json, lines for people. */
export type CommandResult = { json: object; text: string; exit_code?: 0 | 1 | 2 };

/** Adds `--json` and runs `action`, whose answer is printed in the form that was asked for. */
export function says(command: Command, action: (...words: string[]) => Promise<CommandResult>): Command {
  return command
    .option('--json', 'one JSON object on stdout, nothing else')
    .action(async (...command_args: unknown[]) => {
      const words = command_args.filter((word) => typeof word === 'string');
      const result = await action(...words);
      process.stdout.write(command.opts()['json'] === true ? `${JSON.stringify(result.json)}\n` : `${result.text}\n`);
      if (result.exit_code) process.exitCode = result.exit_code;
    });
}

/** A text of an argument with 1 to `length_max` characters. Throws CommandError (usage). */
export function readText(text: string | undefined, name: string, length_max: number): string {
  if (text !== undefined && text.length >= 1 && text.length <= length_max && !text.includes('\0')) return text;
  throw new CommandError(`${name} must have 1 to ${length_max} characters.`, 2);
}

/** Runs `work` with the parts that most commands need, beside a running service or without one, and closes them. */
export async function withApp<T>(work: (app: CommandApp) => Promise<T>): Promise<T> {
  return withCommandApp(readCommandConfig(), work);
}

/**
 * The whole service but for its server and its worker, which takes four times as long: for commands that
 * send jobs or use most of it. They tell their own failures: what the parts complain of is nobody's concern.
 */
export async function withEngine<T>(work: (app: App) => Promise<T>): Promise<T> {
  const [{ makeApp }, { openLog }] = await Promise.all([import('../app.ts'), import('../app/log.ts')]);
  const app = await makeApp(readCommandConfig(), { command: true, log: openLog('silent') });
  try {
    return await work(app);
  } finally {
    await app.stop();
  }
}

/** Writes down what was done here, under the name that the same deed has in the dashboard. */
export function note(
  { db, clock }: { db: Db; clock: Clock },
  deed: Pick<Deed, 'account_id' | 'action' | 'subject' | 'details'>,
): Promise<void> {
  return audit(db, { ...deed, now: new Date(clock.now()) });
}

/** A decimal amount of an argument; `signed` accepts a minus. Throws CommandError (usage). */
export function readMoney(text: string, name: string, options: { signed?: boolean } = {}): Money {
  const value = parseMoney(text);
  if (value === undefined || (value < 0n && !options.signed)) {
    throw new CommandError(
      `${name} must be a decimal amount such as 25.00, with at most six fraction digits and not above ${exact(money_max)}; not "${text}".`,
      2,
    );
  }
  return value;
}

/** Rows as columns of equal width, for people. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
