import type { Command } from 'commander';
import { findAccount, listAccounts } from '../accounts/accounts.ts';
import { makeLoginLink } from '../accounts/login-links.ts';
import { firstOperator, ownerOf } from '../accounts/members.ts';
import type { AppWithoutEngine } from '../app.ts';
import { CommandError, says, withApp, type Said } from './command.ts';

export function loginLinkCommand(program: Command): void {
  const command = program
    .command('login-link')
    .description('a link that signs you in to the dashboard, once, within 15 minutes')
    .option('--account <account>', 'as the owner of this account instead of as the operator');
  says(command, () => withApp((app) => makeLink(app, command.opts())));
}

async function makeLink(app: AppWithoutEngine, { account }: { account?: string }): Promise<Said> {
  const now = new Date(app.clock.now());
  const user_id = account === undefined ? await operatorOf(app, now) : await ownerOfAccount(app, account, now);
  const link = await makeLoginLink(app.db, app.base_url(), user_id, now);
  return { json: { link, expires_in: '15m' }, text: link };
}

async function operatorOf(app: AppWithoutEngine, now: Date): Promise<string> {
  const [first] = await listAccounts(app.db);
  if (!first)
    throw new CommandError('There is no account yet: start the service, or make one with "account create".', 1);
  return firstOperator(app.db, first.id, now);
}

async function ownerOfAccount(app: AppWithoutEngine, id: string, now: Date): Promise<string> {
  if (!(await findAccount(app.db, id))) throw new CommandError(`There is no account ${id}.`, 1);
  return ownerOf(app.db, id, now);
}
