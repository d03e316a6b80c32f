import type { Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

/** The charges of a model within a period. */
export type ChargeLine = {
  model: string;
  kind: string;
  charges: bigint;
  /** unit → decimal text. */
  units: Record<string, string>;
  amount: Money;
};

/** Money that came in, or was corrected, by the operator's hand or a payment. */
export type Movement = { type: 'topup' | 'adjustment'; amount: Money; reason: string; ref: string; at: string };

/** All that moved an account's money between two moments: what invoices are made of. */
export type Statement = {
  /** Available money just before, held or not. */
  opening: Money;
  lines: ChargeLine[];
  movements: Movement[];
  charged: Money;
  /** Money at the end. */
  closing: Money;
  /** The number of the account's last entry by then. */
  through: bigint;
};

/** From `from` (inclusive) to `to` (exclusive); `after`: of it only the entries with a higher number. */
export type Period = { account_id: string; from: Date; to: Date; after?: bigint };

/** One statement of SQL, so that all of it is of one moment, whatever is booked meanwhile. */
export async function statementOf(db: Queryable, { account_id, from, to, after = 0n }: Period): Promise<Statement> {
  type Row = {
    opening: string;
    closing: string;
    through: string;
    lines: (Omit<ChargeLine, 'charges' | 'amount'> & { charges: string; amount: string })[];
    movements: (Omit<Movement, 'amount'> & { amount: string })[];
  };
  const rows = await db.query<Row>(
    `with charges as materialized (
       select model, kind, revenue + loss as cost, units from ledger_entries
        where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3 and number > $4),
     used as (
       select model, kind, jsonb_object_agg(unit, amount) as units from (
         select model, kind, unit, trim_scale(sum(amount::numeric))::text as amount
           from charges, jsonb_each_text(units) u (unit, amount) group by model, kind, unit) t group by model, kind),
     lines as (
       select model, kind, count(*)::text as charges, sum(cost)::text as amount, coalesce(u.units, '{}') as units
         from charges left join used u using (model, kind) group by model, kind, u.units),
     movements as (
       select number, type, available::text as amount, reason, ref, created_at as at from ledger_entries
        where account_id = $1 and type in ('topup', 'adjustment') and created_at >= $2 and created_at < $3
          and number > $4)
     select (select coalesce(sum(available + held) filter (where created_at < $2 or number <= $4), 0)::text
               from ledger_entries where account_id = $1 and created_at < $3) as opening,
            (select coalesce(sum(available + held), 0)::text from ledger_entries
              where account_id = $1 and created_at < $3) as closing,
            (select entries::text from balances where account_id = $1) as through,
            coalesce((select jsonb_agg(to_jsonb(l) order by kind, model) from lines l), '[]') as lines,
            coalesce((select jsonb_agg(to_jsonb(m) - 'number' order by number) from movements m), '[]') as movements`,
    [account_id, from, to, after],
  );
  const row = rows[0];
  if (!row) throw new Error('the ledger answered nothing');
  const lines = row.lines.map((line) => ({ ...line, charges: BigInt(line.charges), amount: BigInt(line.amount) }));
  return {
    opening: BigInt(row.opening),
    closing: BigInt(row.closing),
    through: BigInt(row.through),
    lines,
    movements: row.movements.map((one) => ({ ...one, amount: BigInt(one.amount), at: new Date(one.at).toISOString() })),
    charged: lines.reduce((sum, { amount }) => sum + amount, 0n),
  };
}

/** The sum of the charges of a period by itself, up to an entry: what a statement must come to. */
export async function chargedBetween(
  db: Queryable,
  { account_id, from, to, after = 0n }: Period,
  through?: bigint,
): Promise<Money> {
  const rows = await db.query<{ charged: string }>(
    `select coalesce(sum(revenue + loss), 0)::text as charged from ledger_entries
      where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3 and number > $4
        and ($5::bigint is null or number <= $5)`,
    [account_id, from, to, after, through ?? null],
  );
  return BigInt(rows[0]?.charged ?? '0');
}

/** The accounts for which anything was charged, paid in or corrected in a period. */
export async function accountsMoved(db: Queryable, { from, to }: { from: Date; to: Date }): Promise<string[]> {
  const rows = await db.query<{ account_id: string }>(
    `select b.account_id from balances b where exists (
       select from ledger_entries e where e.account_id = b.account_id and e.created_at >= $1 and e.created_at < $2
          and (e.type in ('topup', 'adjustment') or e.type = 'settle' and e.revenue + e.loss > 0))
      order by b.account_id`,
    [from, to],
  );
  return rows.map(({ account_id }) => account_id);
}

/**
 * Returns the charges of each account in whole days (UTC): the sums of most of its entries, and the entries
 * since. A look at many accounts reads a row per day, key and model, not per charge.
 */
export async function chargedByAccount(
  db: Queryable,
  { from, to }: { from: Date; to: Date },
): Promise<{ account_id: string; charged: Money }[]> {
  return db.query<{ account_id: string; charged: Money }>(
    `select account_id, charged::bigint as charged from (
       select b.account_id, coalesce(s.charged, 0) + coalesce(t.charged, 0) as charged
         from balances b left join usage_marks m using (account_id)
         cross join lateral (select sum(cost) as charged from usage_sums u
           where u.account_id = b.account_id and u.step = 'day' and u.start >= $1 and u.start < $2 offset 0) s
         cross join lateral (select sum(revenue + loss) as charged from ledger_entries e
           where e.account_id = b.account_id and e.number > coalesce(m.number, 0) and e.type = 'settle'
             and e.created_at >= $1 and e.created_at < $2 offset 0) t) c
      where charged > 0 order by account_id`,
    [from, to],
  );
}
