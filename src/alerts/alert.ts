import type { Db, Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { newId } from '../lib/ids.ts';
import { publishEvent, publishToAll, type AccountEvent } from '../webhooks/events.ts';

/** Alerts tell people about a problem. Each is open as long as its cause is there. */

export const account_kinds = [
  'balance_low',
  'key_limit',
  'budget',
  'error_rate',
  'webhooks_failing',
  'endpoint_failing',
] as const;
export type AccountKind = (typeof account_kinds)[number];

export function isAccountKind(kind: string): kind is AccountKind {
  return account_kinds.some((each) => each === kind);
}

export const operator_kinds = [
  'provider_down',
  'error_rate',
  'disk',
  'backup_old',
  'model_retiring',
  'queue_age',
  'books',
] as const;
export type OperatorKind = (typeof operator_kinds)[number];

export type AlertKind = AccountKind | OperatorKind;

/** The people that alerts are for: those of all accounts, or operators. */
export type Audience = 'accounts' | 'operators';

/** The cause of an alert, found now. */
export type Cause = {
  /** Null: for operators. */
  account_id: string | null;
  kind: AlertKind;
  /** The thing that it is about, where there may be several of one kind. */
  subject: string;
  /** 2 is critical: its messages are sent in quiet hours, too. */
  level: 1 | 2;
  /** A few words. */
  title: string;
  /** Sentences: the problem, and what to do. */
  summary: string;
  /** The number of the last entry of a balance; null for other alerts. */
  mark: bigint | null;
  /** Published when the alert opens, and when it is critical for the first time: to endpoints of the account; for operators' causes, to those of all. */
  event?: AccountEvent;
};

/** Name of a cause. */
export type CauseName = Pick<Cause, 'account_id' | 'kind' | 'subject'>;

export type Alert = Omit<Cause, 'event'> & {
  id: string;
  opened_at: Date;
  seen_at: Date;
  closed_at: Date | null;
};

const columns = 'id, account_id, kind, subject, level, title, summary, mark, opened_at, seen_at, closed_at';

const whose = (audience: Audience) => `account_id is ${audience === 'accounts' ? 'not null' : 'null'}`;

/** An alert that is open. `level_max`: the highest level that it has had; nodes of the version before do not write it. */
export type OpenAlert = Alert & { level_max: number };

/** Every open alert of an audience, oldest first. */
export async function openAlerts(db: Queryable, audience: Audience): Promise<OpenAlert[]> {
  return db.query<OpenAlert>(
    `select ${columns}, greatest(level, level_max) as level_max from alerts where closed_at is null and ${whose(audience)} order by opened_at, id`,
  );
}

/** An alert as people see it. `notified_at`: the last message about it that was sent. */
export type AlertLine = Alert & { notified_at: Date | null };

const lines_max = 100;

/** Alerts of an account, or of operators (null): the open ones, then those that were closed last. */
export async function listAlerts(db: Queryable, account_id: string | null): Promise<AlertLine[]> {
  return db.query<AlertLine>(
    `select ${columns}, (select max(n.sent_at) from alert_notices n where n.alert_id = a.id) as notified_at
       from alerts a where account_id ${account_id === null ? 'is null' : '= $1'} and not is_withdrawn
      order by closed_at desc nulls first, opened_at desc, id desc limit ${lines_max}`,
    account_id === null ? [] : [account_id],
  );
}

/** Time after its cause was seen last at which an alert is closed, ms: a cause that comes and goes is one alert. */
const close_after_ms: { readonly [kind in AlertKind]: number } = {
  balance_low: 3_600_000, // holds come and go; a payment closes it at once
  key_limit: 3_600_000,
  budget: 0, // it is open until its period ends, and is withdrawn then
  error_rate: 600_000,
  webhooks_failing: 600_000,
  endpoint_failing: 0,
  provider_down: 300_000,
  disk: 300_000,
  queue_age: 300_000,
  backup_old: 0,
  model_retiring: 0,
  books: 0,
};

/** Interval of reminders of an open alert. */
const remind_after_s = 86_400;
/** The same for causes that last: the end of a model is announced for a month, an endpoint may stay disabled. */
const remind_seldom_s = 7 * 86_400;
const seldom: readonly AlertKind[] = ['model_retiring', 'endpoint_failing'];

/** The result of a check for causes. */
export type CheckResult = {
  causes: readonly Cause[];
  /** Causes that have ended for certain: their alerts are closed at once. */
  ended?: readonly CauseName[];
  /** Returns true for an open alert that nobody wants any more: it is closed without a message. */
  isWithdrawn?: (alert: Alert) => boolean;
};

/**
 * Opens an alert for each cause that has none, and closes those whose causes are gone. Two nodes that check at once open
 * one alert.
 */
export async function updateAlerts(db: Db, audience: Audience, result: CheckResult, now: Date): Promise<void> {
  const { causes, ended = [], isWithdrawn = () => false } = result;
  const present = new Set(causes.map(nameOf));
  const over = new Set(ended.map(nameOf));
  const open = await openAlerts(db, audience);
  const withdrawn = open.filter(isWithdrawn);
  const closed = open.filter((alert) => {
    if (over.has(nameOf(alert))) return true;
    return !present.has(nameOf(alert)) && alert.seen_at.getTime() <= now.getTime() - close_after_ms[alert.kind];
  });
  const closing = new Set([...withdrawn, ...closed]);
  const staying = open.filter((alert) => !closing.has(alert));
  const published = new Map(staying.map((alert) => [nameOf(alert), alert.level_max]));
  await db.tx(async (tx) => {
    await closeAlerts(tx, withdrawn, true, now);
    await closeAlerts(tx, closed, false, now);
    const opened = await upsertAlerts(tx, causes, now);
    const isNews = (cause: Cause) => opened.has(nameOf(cause)) || cause.level > (published.get(nameOf(cause)) ?? 2);
    for (const cause of causes.filter(isNews)) await publishCause(tx, cause, now);
  });
}

async function publishCause(tx: Queryable, { account_id, event }: Cause, now: Date): Promise<void> {
  if (!event) return;
  if (account_id === null) await publishToAll(tx, event, now);
  else await publishEvent(tx, account_id, event, now);
}

/** Returns a text that is different for each cause. */
function nameOf({ account_id, kind, subject }: CauseName): string {
  return JSON.stringify([account_id, kind, subject]);
}

async function closeAlerts(tx: Queryable, alerts: readonly Alert[], is_withdrawn: boolean, now: Date): Promise<void> {
  if (alerts.length === 0) return;
  await tx.query('update alerts set closed_at = $2, is_withdrawn = $3 where id = any($1) and closed_at is null', [
    alerts.map(({ id }) => id),
    now,
    is_withdrawn,
  ]);
}

/** Opens alerts, or updates those that are open. Returns the names of the new ones. */
async function upsertAlerts(tx: Queryable, causes: readonly Cause[], now: Date): Promise<Set<string>> {
  const unique = new Map(causes.map((cause) => [nameOf(cause), cause]));
  const rows = [...unique.values()].map(({ event: _event, ...cause }) => ({
    ...cause,
    id: newId('alert', now.getTime()),
    title: cause.title.slice(0, 200),
    summary: cause.summary.slice(0, 2_000),
    remind_s: seldom.includes(cause.kind) ? remind_seldom_s : remind_after_s,
  }));
  const opened = new Set<string>();
  for (let i = 0; i < rows.length; i += rows_max) {
    const written = await writeRows(tx, rows.slice(i, i + rows_max), now);
    for (const row of written) if (row.is_new) opened.add(nameOf(row));
  }
  return opened;
}

/** Rows of one statement. */
const rows_max = 1_000;

async function writeRows(tx: Queryable, rows: readonly object[], now: Date) {
  return tx.query<CauseName & { is_new: boolean }>(
    `insert into alerts (id, account_id, kind, subject, level, level_max, title, summary, mark, remind_after, opened_at, seen_at)
     select id, account_id, kind, subject, level, level, title, summary, mark, make_interval(secs => remind_s), $2, $2
       from jsonb_to_recordset((($1::jsonb)->'causes')) as r (id text, account_id text, kind text, subject text,
         level smallint, title text, summary text, mark bigint, remind_s float8)
      order by account_id, kind, subject
     on conflict (coalesce(account_id, ''), kind, subject) where closed_at is null do update set
       level = excluded.level, level_max = greatest(alerts.level_max, excluded.level), title = excluded.title, summary = excluded.summary, mark = excluded.mark,
       seen_at = greatest(alerts.seen_at, excluded.seen_at)
     returning account_id, kind, subject, xmax = 0 as is_new`,
    [recordText({ causes: rows }), now],
  );
}

/** Removes alerts that were closed before then, with their messages. */
export async function removeOldAlerts(db: Queryable, before: Date): Promise<void> {
  await db.query('delete from alerts where closed_at < $1', [before]);
  await db.query('delete from disks where seen_at < $1', [before]);
}
