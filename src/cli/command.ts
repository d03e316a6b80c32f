import { audit, type NewAuditEntry } from '../accounts/audit.ts';
import type { App } from '../app.ts';
import { withCommandApp, type CommandApp } from '../app/command-app.ts';
import { readCommandConfig } from '../app/running.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { CommandError } from './result.ts';
import { exact, money_max, parseMoney, type Money } from '../money/money.ts';

export { CommandError, readText, says, table, type CommandResult } from './result.ts';

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

/** Writes down what was done here, under the name that the same action has in the dashboard. */
export function auditCommand(
  { db, clock }: { db: Db; clock: Clock },
  audit_entry: Pick<NewAuditEntry, 'account_id' | 'action' | 'subject' | 'details'>,
): Promise<void> {
  return audit(db, { ...audit_entry, now: new Date(clock.now()) });
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
