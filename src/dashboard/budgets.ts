import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { Account } from '../accounts/accounts.ts';
import { keyNamesOf } from '../accounts/keys.ts';
import { listMembers } from '../accounts/members.ts';
import { budgetsInSight } from '../accounts/project-scope.ts';
import { default_project, listProjects, projectNames } from '../accounts/projects.ts';
import { ApiError, invalidField } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import { isId, newId } from '../lib/ids.ts';
import {
  alert_percents,
  budget_periods,
  budget_scopes,
  budgets_max,
  findAccountBudget,
  listAccountBudgets,
  removeAccountBudget,
  setAccountBudget,
  type BudgetScope,
  type BudgetSetting,
  type BudgetState,
} from '../money/account-budgets.ts';
import { budgetsOf } from '../money/ledger.ts';
import { refusedByBudgets } from '../money/refusals.ts';
import { costView, exact, parseMoney, type Money } from '../money/money.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { BudgetsView, BudgetView } from './views/budgets.ts';

/** The parts of the app that budgets take. */
type Parts = { readonly db: Db; readonly clock: Clock };

const name_length_max = 100;
const subject_length_max = 60;

/** The budgets of the account as they stand, and what further ones can be for. */
export const list_budgets = account_endpoint('GET', '/budgets', 'read', listInSight, { limited: 'own' });

/** Whoever is limited to projects reads the budgets of these and of their keys. */
async function listInSight(app: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const now = new Date(app.clock.now());
  const [budgets, choices, projects] = await Promise.all([
    listAccountBudgets(app.db, account.id, now),
    choicesOf(app.db, account.id),
    projectNames(app.db, account.id),
  ]);
  const of_keys = budgets.flatMap(({ scope: about, subject }) =>
    about === 'key' && subject !== null ? [subject] : [],
  );
  const [refused, keys, shown] = await Promise.all([
    refusedByBudgets(app.db, account.id, budgets),
    keyNamesOf(app.db, of_keys, now),
    budgetsInSight(app.db, scope, budgets),
  ]);
  const names = new Map([...projects, ...keys, ...choices.members.map(({ id, name }) => [id, name] as const)]);
  const view: BudgetsView = {
    data: shown.map((budget) => ({
      ...renderBudget(budget, account, names, now),
      refused: refused.get(budget.id) ?? 0,
    })),
    choices: scope ? { projects: [], members: [] } : choices,
  };
  return { status: 200, body: view };
}

/** Projects that are in use, and members. */
async function choicesOf(db: Db, account_id: string): Promise<BudgetsView['choices']> {
  const [projects, members] = await Promise.all([listProjects(db, account_id), listMembers(db, account_id)]);
  const active = projects.filter(({ archived_at }) => archived_at === null);
  return {
    projects: [default_project, ...active].map(({ id, name }) => ({ id, name })),
    members: members.map(({ user_id, name, email }) => ({ id: user_id, name: name === '' ? email : name })),
  };
}

function renderBudget(
  budget: BudgetState,
  { currency }: Account,
  names: ReadonlyMap<string, string>,
  now: Date,
): Omit<BudgetView, 'refused'> {
  const { id, name, scope, subject, period, amount, is_hard, spent, held, begins_at, ends_at } = budget;
  const projection = projectionOf(budget, now);
  return {
    id,
    name,
    scope,
    subject: subject === null ? null : { id: subject, name: names.get(subject) ?? subject },
    period,
    amount: costView(amount, currency),
    is_hard,
    alert_percents: [...budget.alert_percents],
    spent: costView(spent, currency),
    held: costView(held, currency),
    used_percent: percentOf(spent + held, amount),
    begins_at: begins_at?.toISOString() ?? null,
    ends_at: ends_at?.toISOString() ?? null,
    projection: projection === null ? null : costView(projection, currency),
  };
}

function percentOf(used: Money, amount: Money): number {
  if (amount === 0n) return 100;
  const percent = (used * 100n) / amount;
  return Number(percent > 999n ? 999n : percent);
}

/** A first twentieth of a period tells nothing of the rest. */
const too_early = 20n;

function projectionOf({ spent, begins_at, ends_at }: BudgetState, now: Date): Money | null {
  if (!begins_at || !ends_at) return null;
  const [whole_ms, past_ms] = [ends_at, now].map((at) => BigInt(at.getTime() - begins_at.getTime()));
  if (whole_ms === undefined || past_ms === undefined || past_ms * too_early < whole_ms) return null;
  return (spent * whole_ms) / past_ms;
}

export const create_budget = account_endpoint(
  'POST',
  '/budgets',
  'billing',
  async (app, call) => {
    const { account, body } = call;
    const now = new Date(app.clock.now());
    const fields = readBodyFields(body);
    const scope = fields.oneOf('scope', budget_scopes);
    const budget: BudgetSetting = {
      id: newId('budget', now.getTime()),
      account_id: account.id,
      name: fields.text('name', name_length_max),
      scope,
      subject: scope === 'account' ? null : await readSubject(app.db, call, scope, now),
      period: fields.oneOf('period', budget_periods),
      amount: readAmount(body),
      is_hard: fields.oneOf('kind', ['soft', 'hard']) === 'hard',
      ...readAlerts(body),
    };
    await set(app, budget, now);
    const { id, account_id: _, amount, ...noted } = budget;
    await auditAction(app, call, 'budget.create', id, { ...noted, amount: exact(amount) });
    return { status: 201, body: { id } };
  },
  { needs_proof: true },
);

export const change_budget = account_endpoint(
  'PATCH',
  '/budgets/{id}',
  'billing',
  async (app, call) => {
    const now = new Date(app.clock.now());
    const before = await findOwn(app.db, call, now);
    const fields = readBodyFields(call.body);
    const name = fields.optionalText('name', name_length_max) ?? before.name;
    const amount = call.body?.['amount'] === undefined ? before.amount : readAmount(call.body);
    const is_hard =
      call.body?.['kind'] === undefined ? before.is_hard : fields.oneOf('kind', ['soft', 'hard']) === 'hard';
    const { id, account_id, scope, subject, period } = before;
    const alerts = readAlerts(call.body);
    await set(app, { id, account_id, name, scope, subject, period, amount, is_hard, ...alerts }, now);
    const details = { name, amount: exact(amount), amount_before: exact(before.amount), is_hard, ...alerts };
    await auditAction(app, call, 'budget.change', id, details);
    return { status: 200, body: { id } };
  },
  { needs_proof: true },
);

export const remove_budget = account_endpoint(
  'DELETE',
  '/budgets/{id}',
  'billing',
  async (app, call) => {
    const { id, name } = await findOwn(app.db, call, new Date(app.clock.now()));
    await removeAccountBudget(app.db, call.account.id, id);
    await auditAction(app, call, 'budget.remove', id, { name });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

async function set(app: Parts, budget: BudgetSetting, now: Date): Promise<void> {
  const outcome = await setAccountBudget(app.db, budget, now);
  if (outcome === 'crowded')
    throw invalidField('name', `The account has ${budgets_max} budgets, which is the most. Remove one first.`);
  if (outcome === 'leased')
    throw new ApiError('conflict', 'The service has reserved the money for calls. Try again in a few seconds.');
}

async function findOwn(db: Db, { account, params }: AccountCall, now: Date): Promise<BudgetState> {
  const { id = '' } = params;
  const budget = id.includes('\0') ? undefined : await findAccountBudget(db, { account_id: account.id, id }, now);
  if (!budget) throw new ApiError('not_found', 'There is no such budget.');
  return budget;
}

async function readSubject(
  db: Db,
  { account, body }: AccountCall,
  scope: Exclude<BudgetScope, 'account'>,
  now: Date,
): Promise<string> {
  const id = readBodyFields(body).text('subject', subject_length_max);
  const subject =
    scope === 'key' ? await readKey(db, account.id, id, now) : await readChoice(db, account.id, scope, id);
  if (subject !== undefined) return subject;
  throw invalidField('subject', `subject must be the id of a ${scope} of this account.`);
}

/** Reads `alert_percents`, which may be absent. Throws ApiError 422. */
function readAlerts(body: Record<string, unknown> | undefined): Pick<BudgetSetting, 'alert_percents'> {
  const value = body?.['alert_percents'];
  if (value === undefined) return {};
  const percents = Array.isArray(value) ? alert_percents.filter((each) => value.includes(each)) : [];
  if (!Array.isArray(value) || percents.length !== value.length)
    throw invalidField(
      'alert_percents',
      'alert_percents must be a list with some of 50, 80 and 100, each once, or with none.',
    );
  return { alert_percents: percents };
}

async function readChoice(db: Db, account_id: string, scope: 'project' | 'member', id: string) {
  const { projects, members } = await choicesOf(db, account_id);
  const choices = { project: projects, member: members }[scope];
  return choices.find((choice) => choice.id === id)?.id;
}

/** Returns the key that has the budget of a working key. */
async function readKey(db: Db, account_id: string, id: string, now: Date): Promise<string | undefined> {
  const [budget] = isId('key', id) ? await budgetsOf(db, account_id, now, [id]) : [];
  const working = budget && (await keyNamesOf(db, [budget.budget_id], now));
  return working?.size === 1 ? budget?.budget_id : undefined;
}

function readAmount(body: Record<string, unknown> | undefined): Money {
  const value = body?.['amount'];
  const amount = typeof value === 'string' ? parseMoney(value.trim()) : undefined;
  if (amount !== undefined && amount >= 0n) return amount;
  throw invalidField('amount', 'amount must be an amount such as "25" or "12.50", zero or more.');
}
