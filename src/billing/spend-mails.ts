import type { Queryable } from '../db/database.ts';
import type { UsageGroup } from '../money/groups.ts';

/** Mails about spend that people asked for: one for each person and account. */

export const spend_periods = ['day', 'week', 'month'] as const;
export type SpendPeriod = (typeof spend_periods)[number];

/** The person who gets the mail, and the account that it is about. */
export type Reader = { account_id: string; user_id: string };

export type SpendMail = Reader & {
  every: SpendPeriod;
  grouped_by: UsageGroup;
  /** End of the period that is mailed next. */
  ends_at: Date;
};

const columns = 'account_id, user_id, every, grouped_by, ends_at';

/** Returns what a person asked for; undefined for nothing. */
export async function findSpendMail(db: Queryable, { account_id, user_id }: Reader): Promise<SpendMail | undefined> {
  const rows = await db.query<SpendMail>(`select ${columns} from spend_mails where account_id = $1 and user_id = $2`, [
    account_id,
    user_id,
  ]);
  return rows[0];
}

/** Sets what a person gets, from the end of the current period on. */
export async function setSpendMail(db: Queryable, mail: Omit<SpendMail, 'ends_at'>, now: Date): Promise<void> {
  const { account_id, user_id, every, grouped_by } = mail;
  await db.query(
    `insert into spend_mails (${columns}, created_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (account_id, user_id) do update set every = excluded.every, grouped_by = excluded.grouped_by,
       ends_at = excluded.ends_at`,
    [account_id, user_id, every, grouped_by, endOfPeriod(every, now), now],
  );
}

/** Stops them. One that is not there is no failure. */
export async function removeSpendMail(db: Queryable, { account_id, user_id }: Reader): Promise<void> {
  await db.query('delete from spend_mails where account_id = $1 and user_id = $2', [account_id, user_id]);
}

/** In one read. */
const due_max = 200;

/** Returns mails whose period ended by `ended_by`, in order; those after `after`. */
export async function dueSpendMails(
  db: Queryable,
  ended_by: Date,
  after: SpendMail | undefined,
): Promise<readonly SpendMail[]> {
  return db.query<SpendMail>(
    `select ${columns} from spend_mails
      where ends_at <= $1 and ($2::timestamptz is null or (ends_at, account_id, user_id) > ($2, $3, $4))
      order by ends_at, account_id, user_id limit ${due_max}`,
    [ended_by, after?.ends_at ?? null, after?.account_id ?? null, after?.user_id ?? null],
  );
}

/** Makes the period that has not ended yet the next one, unless the person changed it meanwhile. */
export async function advanceSpendMail(db: Queryable, mail: SpendMail, now: Date): Promise<void> {
  await db.query(
    'update spend_mails set ends_at = $4 where account_id = $1 and user_id = $2 and ends_at = $3 and every = $5',
    [mail.account_id, mail.user_id, mail.ends_at, endOfPeriod(mail.every, now), mail.every],
  );
}

/** Returns the end of the period that a moment is in: the first moment of the next one. */
export function endOfPeriod(every: SpendPeriod, now: Date): Date {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  if (every === 'day') return new Date(Date.UTC(year, month, day + 1));
  if (every === 'month') return new Date(Date.UTC(year, month + 1, 1));
  const days_since_monday = (now.getUTCDay() + 6) % 7;
  return new Date(Date.UTC(year, month, day - days_since_monday + 7));
}

/** Returns the beginning of the period that ends then. */
export function beginningOfPeriod(every: SpendPeriod, end: Date): Date {
  const [year, month, day] = [end.getUTCFullYear(), end.getUTCMonth(), end.getUTCDate()];
  if (every === 'month') return new Date(Date.UTC(year, month - 1, 1));
  return new Date(Date.UTC(year, month, day - (every === 'day' ? 1 : 7)));
}
