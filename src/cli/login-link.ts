import type { Command } from 'commander';
import { findAccount, listAccounts } from '../accounts/accounts.ts';
import { makeLoginLink } from '../accounts/sign-in/login-links.ts';
import { firstOperator, ownerOf } from '../accounts/members.ts';
import type { CommandApp } from '../app/command-app.ts';
import { CommandError, auditCommand, says, withApp, type CommandResult } from './command.ts';

export function loginLinkCommand(command: Command): void {
  command.option('--account <account>', 'as the owner of this account instead of as the operator');
  says(command, () => withApp((app) => makeLink(app, command.opts())));
}

async function makeLink(app: CommandApp, { account }: { account?: string }): Promise<CommandResult> {
  const now = new Date(app.clock.now());
  const user_id = account === undefined ? await operatorOf(app, now) : await ownerOfAccount(app, account, now);
  const link = await makeLoginLink(app.db, await app.base_url(), user_id, now);
  await auditCommand(app, { account_id: account, action: 'login_link.create', subject: user_id });
  return { json: { link, expires_in: '15m' }, text: link };
}

async function operatorOf(app: CommandApp, now: Date): Promise<string> {
  const [first] = await listAccounts(app.db);
  if (!first)
    throw new CommandError('There is no account yet: start the service, or create one with "account create".', 1);
  return firstOperator(app.db, first.id, now);
}

async function ownerOfAccount(app: CommandApp, id: string, now: Date): Promise<string> {
  if (!(await findAccount(app.db, id))) throw new CommandError(`There is no account ${id}.`, 1);
  return ownerOf(app.db, id, now);
}
