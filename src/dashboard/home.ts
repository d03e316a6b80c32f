import type { Account } from '../accounts/accounts.ts';
import { areOfPrograms, findKeys, keyNames, keysNearLimit } from '../accounts/key-list.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Answer } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { keysOfMember } from '../money/ledger.ts';
import { costView, type Money } from '../money/money.ts';
import { usageOf, type UsageRow } from '../money/usage.ts';
import { listTaskLines } from '../tasks/list.ts';
import { countedFailures, pausedUntil } from '../tasks/pause.ts';
import { countUndelivered, hasDelivered } from '../webhooks/delivery.ts';
import { alertOf } from './billing.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { keysInSight, seesProject, type ProjectScope } from '../accounts/project-scope.ts';
import { renderLine } from './tasks.ts';
import type { HomeView } from './views/home.ts';

const day_ms = 86_400_000;
const days_shown = 30;
const keys_shown = 5;

/** The home page: money, running work, results, and what needs attention. */
export const get_home = account_endpoint('GET', '/home', 'read', readHome, { limited: 'own' });

/** The parts of the app that the home page takes. */
type Parts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/** Whoever is limited to projects reads of these, and nothing that is counted for the whole account. */
async function readHome(app: Parts, { account, scope, person }: AccountCall): Promise<Answer> {
  const now = new Date(app.clock.now());
  const near = { account_id: account.id, project_ids: scope?.project_ids, percent: 80, limit: keys_shown + 1 };
  const [spend, work, failures, near_limit, undelivered, delivered, alert, own_keys] = await Promise.all([
    spendOf(app.db, account, now, scope),
    workOf(app.db, account.id, scope),
    failuresOf(app, account.id, now, scope),
    keysNearLimit(app.db, near, now),
    scope ? { dropped: 0, retrying: 0 } : countUndelivered(app.db, account.id, new Date(now.getTime() - day_ms)),
    scope ? false : hasDelivered(app.db, account.id),
    scope ? undefined : alertOf(app.db, account.id, account.currency),
    ownKeysOf(app.db, account.id, person.user.id, scope),
  ]);
  const { running, results, has_image, has_called } = work;
  const api = scope ? own_keys.some(({ last_used_at }) => last_used_at !== null) : has_called;
  const steps = { image: has_image, api, webhook: delivered, key: own_keys.length > 0 };
  const low_balance = alert?.is_low ? alert.threshold : null;
  const keys_near_limit = near_limit.slice(0, keys_shown);
  const has_more_near_limit = near_limit.length > keys_shown;
  const keys = { keys_near_limit, has_more_near_limit };
  const view: HomeView = { spend, running, results, failures, ...keys, undelivered, low_balance, steps };
  return { status: 200, body: view };
}

/** Returns the keys that a person has made, of those in sight. */
async function ownKeysOf(db: Db, account_id: string, user_id: string, scope: ProjectScope | undefined) {
  const own = await keysOfMember(db, account_id, user_id);
  const seen = own.filter(({ project_id }) => seesProject(scope, project_id));
  return findKeys(
    db,
    account_id,
    seen.map(({ key_id }) => key_id),
  );
}

function startOfDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()));
}

async function spendOf(
  db: Db,
  account: Account,
  now: Date,
  scope: ProjectScope | undefined,
): Promise<HomeView['spend']> {
  const today = startOfDay(now);
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1));
  const before = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1));
  const before_end = new Date(Math.min(before.getTime() + (now.getTime() - month.getTime()), month.getTime()));
  const first = new Date(today.getTime() - (days_shown - 1) * day_ms);
  const usage = (from: Date, to: Date, group_by: 'day'[] = []) =>
    usageOf(db, { account_id: account.id, from, to, group_by, only: { projects: scope?.project_ids } });
  const end = new Date(now.getTime() + 1);
  const [by_day, this_month, last_month] = await Promise.all([
    usage(first, end, ['day']),
    usage(month, end),
    usage(before, before_end),
  ]);
  const costs = new Map(by_day.map(({ day, cost }) => [day, cost]));
  const days = Array.from({ length: days_shown }, (_, index) => dayText(new Date(first.getTime() + index * day_ms)));
  const shown = (cost: Money) => costView(cost, account.currency);
  return {
    today: shown(costs.get(dayText(today)) ?? 0n),
    month: shown(sumOf(this_month)),
    month_before: shown(sumOf(last_month)),
    days: days.map((day) => ({ day, cost: shown(costs.get(day) ?? 0n) })),
  };
}

function dayText(day: Date): string {
  return day.toISOString().slice(0, 10);
}

function sumOf(rows: readonly UsageRow[]): Money {
  return rows.reduce((sum, { cost }) => sum + cost, 0n);
}

const looked_at = 40;

async function workOf(db: Db, account_id: string, scope: ProjectScope | undefined) {
  const whose = { account_id, ...(await keysInSight(db, account_id, scope)) };
  const [running, queued, done] = await Promise.all([
    listTaskLines(db, { ...whose, limit: 10, status: 'running' }),
    listTaskLines(db, { ...whose, limit: 10, status: 'queued' }),
    listTaskLines(db, { ...whose, limit: looked_at, status: 'succeeded' }),
  ]);
  const lines = [...running.lines, ...queued.lines].toSorted((a, b) => (a.id < b.id ? 1 : -1));
  const with_files = done.lines.filter(({ files, files_removed_at }) => files.length > 0 && files_removed_at === null);
  const ids = new Set([...lines, ...done.lines].map(({ key_id }) => key_id));
  const [names, has_called] = await Promise.all([keyNames(db, account_id, ids), areOfPrograms(db, account_id, ids)]);
  return {
    running: lines.slice(0, 10).map((line) => renderLine(account_id, line, names)),
    results: with_files.slice(0, 6).map((line) => renderLine(account_id, line, names)),
    has_image: done.lines.some(({ kind }) => kind === 'image'),
    has_called,
  };
}

async function failuresOf(
  { db, catalog }: { db: Db; catalog: CatalogHolder },
  account_id: string,
  now: Date,
  scope: ProjectScope | undefined,
): Promise<HomeView['failures']> {
  const limit = catalog.current.settings.limits.failed_per_24h;
  const [counted, until] = await Promise.all([
    countedFailures(db, account_id, now),
    pausedUntil(db, account_id, limit, now),
  ]);
  return { counted: scope ? (until ? limit : 0) : counted, limit, paused_until: until?.toISOString() ?? null };
}
