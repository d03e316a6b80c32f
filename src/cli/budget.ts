import type { Command } from 'commander';
import { keyNamesOf } from '../accounts/keys.ts';
import { listMembers } from '../accounts/members.ts';
import { projectNames } from '../accounts/projects.ts';
import type { CommandApp } from '../app/command-app.ts';
import { newId } from '../lib/ids.ts';
import {
  alert_percents,
  budget_periods,
  budgets_max,
  findAccountBudget,
  listAccountBudgets,
  removeAccountBudget,
  setAccountBudget,
  type BudgetSetting,
  type BudgetState,
} from '../money/account-budgets.ts';
import { budgetsOf } from '../money/ledger.ts';
import { exact } from '../money/money.ts';
import { requireAccount } from './account.ts';
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

const name_length_max = 100;
const alerts_help = 'at which percentages people hear of it: some of 50, 80, 100 with commas, or none';

export function budgetCommands(budget: Command): void {
  const create = budget
    .command('create <amount>')
    .description('make a budget of all of an account, or of one project, key or member');
  create
    .requiredOption('--account <account>', 'whose')
    .requiredOption('--name <name>', 'its name')
    .requiredOption('--period <period>', `its period in UTC: ${budget_periods.join(', ')}`)
    .option('--project <project>', 'only this project')
    .option('--key <key>', 'only this key and those it was rotated to')
    .option('--member <user>', 'only the keys that this member made')
    .option('--hard', 'refuse calls that it does not pay')
    .option('--alerts <percents>', alerts_help);
  says(create, (amount = '') => withApp((app) => createOne(app, amount, create.opts())));

  const change = budget
    .command('change <budget>')
    .description('change the amount of a budget, whether it is hard, or its alerts');
  change
    .requiredOption('--account <account>', 'whose')
    .option('--amount <amount>', 'its amount')
    .option('--hard', 'refuse calls that it does not pay')
    .option('--soft', 'refuse nothing')
    .option('--alerts <percents>', alerts_help);
  says(change, (id = '') => withApp((app) => changeOne(app, id, change.opts())));

  const remove = budget.command('remove <budget>').description('remove a budget');
  remove.requiredOption('--account <account>', 'whose');
  says(remove, (id = '') => withApp((app) => removeOne(app, id, remove.opts())));

  const list = budget.command('list').description('the budgets of an account, and what is spent of them');
  list.requiredOption('--account <account>', 'whose');
  says(list, () => withApp((app) => listAll(app, list.opts())));
}

type CreateOptions = {
  account?: string;
  name?: string;
  period?: string;
  project?: string;
  key?: string;
  member?: string;
  hard?: boolean;
  alerts?: string;
};

async function createOne(app: CommandApp, text: string, options: CreateOptions): Promise<CommandResult> {
  const amount = readMoney(text, 'AMOUNT');
  const name = readText(options.name, '--name', name_length_max);
  const period = budget_periods.find((each) => each === options.period);
  if (!period) throw new CommandError(`--period must be one of ${budget_periods.join(', ')}.`, 2);
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const now = new Date(app.clock.now());
  const whose = await subjectOf(app, account_id, options, now);
  const { hard: is_hard = false } = options;
  const alerts = readAlerts(options);
  const budget: BudgetSetting = {
    id: newId('budget', now.getTime()),
    account_id,
    name,
    ...whose,
    period,
    amount,
    is_hard,
    ...alerts,
  };
  await set(app, budget, now);
  const details = { name, ...whose, period, amount: exact(amount), is_hard, ...alerts };
  await auditCommand(app, { account_id, action: 'budget.create', subject: budget.id, details });
  return { json: { id: budget.id, ...details }, text: budget.id };
}

async function subjectOf(
  app: CommandApp,
  account_id: string,
  { project, key, member }: CreateOptions,
  now: Date,
): Promise<Pick<BudgetSetting, 'scope' | 'subject'>> {
  const chosen = [project, key, member].filter((each) => each !== undefined);
  if (chosen.length > 1) throw new CommandError('Name one of --project, --key and --member.', 2);
  if (project !== undefined) {
    if (!(await projectNames(app.db, account_id)).has(project)) throw absent('project', project);
    return { scope: 'project', subject: project };
  }
  if (key !== undefined) {
    const [budget] = await budgetsOf(app.db, account_id, now, [key]);
    if (!budget || (await keyNamesOf(app.db, [budget.budget_id], now)).size === 0) throw absent('key', key);
    return { scope: 'key', subject: budget.budget_id };
  }
  if (member === undefined) return { scope: 'account', subject: null };
  const members = await listMembers(app.db, account_id);
  const person = members.find(({ user_id, email }) => user_id === member || email === member);
  if (!person) throw absent('member', member);
  return { scope: 'member', subject: person.user_id };
}

function absent(what: string, id: string): CommandError {
  return new CommandError(`The account has no ${what} "${id}".`);
}

/** Reads `--alerts`, which may be absent. */
function readAlerts({ alerts }: { alerts?: string }): Pick<BudgetSetting, 'alert_percents'> {
  if (alerts === undefined) return {};
  const words = alerts === 'none' ? [] : alerts.split(',').map((word) => word.trim());
  const percents = alert_percents.filter((each) => words.includes(String(each)));
  if (percents.length !== words.length)
    throw new CommandError('--alerts must be some of 50, 80, 100 with commas, or none.', 2);
  return { alert_percents: percents };
}

type ChangeOptions = { account?: string; amount?: string; hard?: boolean; soft?: boolean; alerts?: string };

async function changeOne(app: CommandApp, id: string, options: ChangeOptions): Promise<CommandResult> {
  if (options.hard && options.soft) throw new CommandError('Name --hard or --soft, not both.', 2);
  const alerts = readAlerts(options);
  if (options.amount === undefined && !options.hard && !options.soft && !alerts.alert_percents)
    throw new CommandError('Name what to change: --amount, --hard, --soft or --alerts.', 2);
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const now = new Date(app.clock.now());
  const before = await requireBudget(app, account_id, id, now);
  const amount = options.amount === undefined ? before.amount : readMoney(options.amount, '--amount');
  const is_hard = options.hard === true || (before.is_hard && options.soft !== true);
  const { name, scope, subject, period } = before;
  await set(app, { id, account_id, name, scope, subject, period, amount, is_hard, ...alerts }, now);
  const details = { amount: exact(amount), amount_before: exact(before.amount), is_hard, ...alerts };
  await auditCommand(app, { account_id, action: 'budget.change', subject: id, details });
  return { json: { id, ...details }, text: `${id} is ${exact(amount)}, ${is_hard ? 'hard' : 'soft'}` };
}

async function removeOne(app: CommandApp, id: string, options: { account?: string }): Promise<CommandResult> {
  const { id: account_id } = await requireAccount(app, options.account ?? '');
  const { name } = await requireBudget(app, account_id, id, new Date(app.clock.now()));
  await removeAccountBudget(app.db, account_id, id);
  await auditCommand(app, { account_id, action: 'budget.remove', subject: id, details: { name } });
  return { json: { id, removed: true }, text: `${id} is removed` };
}

async function requireBudget(app: CommandApp, account_id: string, id: string, now: Date): Promise<BudgetState> {
  const budget = await findAccountBudget(app.db, { account_id, id }, now);
  if (!budget) throw new CommandError(`The account has no budget "${id}".`);
  return budget;
}

async function set(app: CommandApp, budget: BudgetSetting, now: Date): Promise<void> {
  const outcome = await setAccountBudget(app.db, budget, now);
  if (outcome === 'crowded')
    throw new CommandError(`The account has ${budgets_max} budgets, which is the most. Remove one first.`);
  if (outcome === 'leased')
    throw new CommandError('The service has reserved the money for calls. Try again in a few seconds.');
}

async function listAll(app: CommandApp, options: { account?: string }): Promise<CommandResult> {
  const account = await requireAccount(app, options.account ?? '');
  const budgets = (await listAccountBudgets(app.db, account.id, new Date(app.clock.now()))).map((budget) => {
    const { id, name, scope, subject, period, amount, is_hard, spent, held, ends_at, alert_percents: alerts } = budget;
    const ends = ends_at?.toISOString() ?? null;
    const money = { amount: exact(amount), spent: exact(spent), held: exact(held) };
    return { id, name, scope, subject, period, kind: is_hard ? 'hard' : 'soft', ...money, ends_at: ends, alerts };
  });
  const rows = budgets.map(({ id, name, scope, subject, period, kind, amount, spent }) => [
    id,
    name,
    subject === null ? scope : `${scope} ${subject}`,
    period,
    kind,
    amount,
    spent,
  ]);
  const header = ['budget', 'name', 'of', 'period', 'kind', 'amount', 'spent'];
  return { json: { budgets }, text: table([header, ...rows]) };
}
