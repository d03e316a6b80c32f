import { nameInMail } from '../accounts/mails.ts';
import { accountCurrencies } from '../accounts/accounts.ts';
import { keyNamesOf } from '../accounts/keys.ts';
import { listThresholds } from '../billing/alerts.ts';
import type { Settings } from '../catalog/model.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { counted } from '../lib/counted.ts';
import { alert_percents, allAccountBudgets, type AlertPercent, type BudgetState } from '../money/account-budgets.ts';
import { budgetsAbove, nextMonth, standingsOf } from '../money/ledger.ts';
import { balanceView, costView, exact, type Money } from '../money/money.ts';
import { failingDeliveries } from '../webhooks/delivery.ts';
import type { AccountEvent } from '../webhooks/events.ts';
import { disableFailing, failingEndpoints } from '../webhooks/failing.ts';
import { isAccountKind, updateAlerts, openAlerts, type Alert, type Cause, type CauseName } from './alert.ts';
import { failingAccounts } from './error-rate.ts';
import { default_settings, errorPercents, settingsOf, wants } from './settings.ts';

/** The parts of the app that a check of all accounts takes. */
export type AccountParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly catalog: { readonly current: { readonly settings: Settings } };
};

type Findings = { causes: Cause[]; ended: CauseName[] };

/** Checks all accounts for causes of alerts, and opens and closes alerts. */
export async function checkAccounts({ db, clock, catalog }: AccountParts): Promise<void> {
  const { disable_after_ms } = catalog.current.settings.webhooks;
  const now = new Date(clock.now());
  const open = await openAlerts(db, 'accounts');
  const thresholds = new Map((await listThresholds(db)).map(({ account_id, threshold }) => [account_id, threshold]));
  const low = await lowBalances(db, thresholds, open);
  const budgets = await budgetsReached(db, open, now);
  const named = new Set(budgets.map(({ subject }) => subject));
  const others = [
    ...(await keysNearLimit(db, now)),
    ...budgets,
    ...(await failingWebhooks(db, now)),
    ...(await failedEndpoints(db, disable_after_ms, now)),
    ...(await failedCalls(db, now)),
  ];
  const ids = new Set([...open, ...others].map(({ account_id }) => account_id ?? ''));
  const settings = await settingsOf(db, [...ids]);
  const isWanted = ({ account_id, kind, subject }: CauseName): boolean => {
    const threshold = thresholds.get(account_id ?? '');
    if (kind === 'balance_low') return threshold !== undefined && subject === exact(threshold);
    if (kind === 'budget') return named.has(subject);
    return isAccountKind(kind) && wants(settings.get(account_id ?? '') ?? default_settings, kind);
  };
  const causes = [...low.causes, ...others].filter(isWanted);
  await updateAlerts(db, 'accounts', { causes, ended: low.ended, isWithdrawn: (alert) => !isWanted(alert) }, now);
}

/**
 * Balances below the amounts of their alerts. Money that came in ends an alert, even if it is gone again: there will be
 * another one.
 */
async function lowBalances(db: Db, thresholds: ReadonlyMap<string, Money>, open: readonly Alert[]): Promise<Findings> {
  const before = new Map(open.filter(({ kind }) => kind === 'balance_low').map((alert) => [alert.account_id, alert]));
  const requests = [...thresholds].map(([account_id, available]) => {
    return { account_id, available, after: before.get(account_id)?.mark ?? null };
  });
  const findings: Findings = { causes: [], ended: [] };
  if (requests.length === 0) return findings;
  for (const { account_id, available, currency, entry, credited } of await standingsOf(db, requests)) {
    const threshold = thresholds.get(account_id) ?? 0n;
    const name = { account_id, kind: 'balance_low', subject: exact(threshold) } as const;
    if (credited) findings.ended.push(name);
    if (available >= threshold) continue;
    const text = (value: Money) => `${balanceView(value, currency).amount} ${currency}`;
    const is_empty = available <= 0n;
    findings.causes.push({
      ...name,
      level: is_empty ? 2 : 1,
      title: is_empty ? 'Empty balance' : 'Low balance',
      summary: `The account has ${text(available)} available, which is less than ${text(threshold)}. Without money, no new work starts.`,
      mark: entry,
      event: {
        type: 'balance.low',
        data: { available: balanceView(available, currency), threshold: balanceView(threshold, currency) },
      },
    });
  }
  return findings;
}

const near_percent = 80;

async function keysNearLimit(db: Db, now: Date): Promise<Cause[]> {
  const budgets = await budgetsAbove(db, near_percent, now);
  if (budgets.length === 0) return [];
  const names = await keyNamesOf(
    db,
    budgets.map(({ key_id }) => key_id),
    now,
  );
  const currencies = await accountCurrencies(db, [...new Set(budgets.map(({ account_id }) => account_id))]);
  const resets_at = nextMonth(now).toISOString();
  const month = resets_at.slice(0, 10);
  return budgets.flatMap(({ account_id, key_id, limit_month, spent, held }): Cause[] => {
    const name = names.get(key_id);
    if (name === undefined) return []; // no key of the budget works any more
    const percent = Number(((spent + held) * 100n) / limit_month);
    const is_full = percent >= 100;
    const title = `${is_full ? 'Limit reached' : 'Limit near'}: ${nameInMail(name)}`;
    const rest = is_full ? 'Its calls are refused' : 'At 100 % its calls are refused';
    const summary = `The key "${nameInMail(name)}" has used ${percent} % of its limit for this month, open holds included. ${rest} until ${month} (UTC), or until its limit is raised.`;
    const currency = currencies.get(account_id) ?? '';
    const use = {
      limit: costView(limit_month, currency),
      used: costView(spent + held, currency),
      used_percent: percent,
    };
    const data = { key_id, key_name: name, budget_id: null, budget_name: null, ...use, resets_at };
    const event = { type: is_full ? 'budget.exceeded' : 'budget.threshold', data } as const;
    return [
      { account_id, kind: 'key_limit', subject: key_id, level: is_full ? 2 : 1, title, summary, mark: null, event },
    ];
  });
}

const highest_first = alert_percents.toSorted((one, other) => other - one);

/**
 * Returns the budgets of which 50, 80 or 100 % is used, held money included: of each the highest percentage that it has
 * reached in its period, among those that people have chosen. It stays a cause until the period is over, another amount is
 * set, or nobody wants to hear of the budget any more: a lower percentage is no news after it.
 */
async function budgetsReached(db: Db, open: readonly Alert[], now: Date): Promise<Cause[]> {
  const before = new Set(open.filter(({ kind }) => kind === 'budget').map(({ subject }) => subject));
  const budgets = await allAccountBudgets(db, now);
  const currencies = await accountCurrencies(db, [...new Set(budgets.map(({ account_id }) => account_id))]);
  return budgets.flatMap((budget) => {
    if (budget.alert_percents.length === 0) return [];
    const percent = usedPercent(budget);
    const isReached = (each: AlertPercent) => budget.alert_percents.includes(each) && percent >= each;
    const reached = highest_first.find((each) => before.has(budgetSubject(budget, each)) || isReached(each));
    return reached === undefined ? [] : [budgetCause(budget, reached, currencies.get(budget.account_id) ?? '')];
  });
}

function usedPercent({ amount, spent, held }: BudgetState): number {
  return amount === 0n ? 100 : Number(((spent + held) * 100n) / amount);
}

/** One for each period, amount and threshold of a budget. */
function budgetSubject({ id, amount, begins_at }: BudgetState, percent: number): string {
  return `${id} ${begins_at?.toISOString().slice(0, 10) ?? 'total'} ${exact(amount)} ${percent}`;
}

function budgetEvent(budget: BudgetState, is_full: boolean, currency: string): AccountEvent {
  const { id, name, amount, spent, held, ends_at } = budget;
  const data = {
    key_id: null,
    key_name: null,
    budget_id: id,
    budget_name: name,
    limit: costView(amount, currency),
    used: costView(spent + held, currency),
    used_percent: usedPercent(budget),
    resets_at: ends_at?.toISOString() ?? null,
  };
  return { type: is_full ? 'budget.exceeded' : 'budget.threshold', data };
}

function budgetCause(budget: BudgetState, percent: AlertPercent, currency: string): Cause {
  const { account_id, name, ends_at, is_hard } = budget;
  const is_full = percent === 100;
  const until = ends_at ? `until ${ends_at.toISOString().slice(0, 10)} (UTC)` : 'for all time';
  const effect = !is_hard
    ? 'Calls go on.'
    : `${is_full ? 'Calls' : 'At 100 % calls'} that it does not pay are refused.`;
  return {
    account_id,
    kind: 'budget',
    subject: budgetSubject(budget, percent),
    level: is_full ? 2 : 1,
    title: `Budget ${is_full ? 'reached' : `at ${percent} %`}: ${nameInMail(name)}`,
    summary: `The budget "${nameInMail(name)}" of ${exact(budget.amount)} ${until} has come to ${percent} %, open holds included. ${effect}`,
    mark: null,
    event: budgetEvent(budget, is_full, currency),
  };
}

/** Webhooks of an account that failed within the hour: at least so many, and as many as arrived. */
const failing_min = 3;
const webhooks_ms = 3_600_000;

async function failingWebhooks(db: Db, now: Date): Promise<Cause[]> {
  const since = new Date(now.getTime() - webhooks_ms);
  const rows = await failingDeliveries(db, { since, failing_min });
  return rows
    .filter(({ failing, delivered }) => failing >= delivered)
    .map(({ account_id, failing, delivered }) => ({
      account_id,
      kind: 'webhooks_failing',
      subject: '',
      level: 1,
      title: 'Webhooks fail',
      summary: `${counted(failing, 'webhook')} could not be delivered in the last hour, and ${delivered} arrived. The page Webhooks has the answers of your receiver. What was dropped can be sent again there.`,
      mark: null,
    }));
}

/** Endpoints that have failed for a day or so, and those that were disabled for it. */
async function failedEndpoints(db: Db, disable_after_ms: number, now: Date): Promise<Cause[]> {
  await disableFailing(db, disable_after_ms, now);
  const failing = await failingEndpoints(db, disable_after_ms);
  return failing.map(({ account_id, id, url, failing_since, disabled_reason }) => {
    const { host } = new URL(url); // the rest of the address may have a secret in it
    const since = failing_since ? ` since ${failing_since.toISOString().slice(0, 16).replace('T', ' ')} UTC` : '';
    const rest = 'Events that it missed can be sent again on the page Webhooks.';
    const name = { account_id, kind: 'endpoint_failing', subject: id, mark: null } as const;
    if (disabled_reason === null) {
      const after = durationWords(disable_after_ms);
      const summary = `Every attempt to deliver to the webhook endpoint at ${host} has failed${since}. After ${after} of that it is disabled. The page Webhooks has the answers of your receiver.`;
      return { ...name, level: 1, title: `A webhook endpoint fails: ${nameInMail(host)}`, summary };
    }
    const why =
      disabled_reason === 'gone'
        ? 'its receiver answered 410, which means that it is gone'
        : `every attempt has failed${since}`;
    const summary = `The webhook endpoint at ${host} is disabled, because ${why}. Repair the receiver and enable it there, or delete it. ${rest}`;
    return { ...name, level: 2, title: `A webhook endpoint is disabled: ${nameInMail(host)}`, summary };
  });
}

function durationWords(ms: number): string {
  const hours = Math.max(1, Math.round(ms / 3_600_000));
  return hours >= 48 && hours % 24 === 0 ? `${hours / 24} days` : counted(hours, 'hour');
}

async function failedCalls(db: Db, now: Date): Promise<Cause[]> {
  const percents = new Map((await errorPercents(db)).map((row) => [row.account_id, row.error_percent]));
  if (percents.size === 0) return [];
  const failing = await failingAccounts(db, percents, now);
  return [...failing].map(([account_id, { ended, failed }]) => {
    const percent = Math.round((failed / ended) * 100);
    const summary = `${failed} of ${ended} calls and generations failed in the last 15 minutes (${percent} %), by no fault of their callers. Activity has the reasons.`;
    const name = { account_id, kind: 'error_rate', subject: '' } as const;
    return { ...name, level: 1, title: 'Many calls fail', summary, mark: null };
  });
}
