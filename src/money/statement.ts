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

type Row = {
  opening: string;
  closing: string;
  through: string;
  lines: (Omit<ChargeLine, 'charges' | 'amount'> & { charges: string; amount: string })[];
  movements: (Omit<Movement, 'amount'> & { amount: string })[];
};

/**
 * Returns the statement of a period that begins and ends with a day (UTC). The lines come from the sums of charges, the
 * balances from what the ledger's entries tell of the sums so far: two computations, which must agree. Where they do
 * not, since an entry was written long after the time that it tells, or only a part of a period is asked for, every
 * entry is read.
 */
export async function statementOf(db: Queryable, period: Period): Promise<Statement> {
  if (period.after !== undefined && period.after > 0n) return readStatement(db, period);
  const rows = await db.query<Row>(summed_statement, [period.account_id, period.from, period.to]);
  const statement = rows[0] && statementIn(rows[0]);
  return statement && addsUp(statement) ? statement : readStatement(db, period);
}

function addsUp({ opening, closing, charged, movements }: Statement): boolean {
  return movements.reduce((sum, { amount }) => sum + amount, opening) - charged === closing;
}

function statementIn(row: Row): Statement {
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

/** Lines of `charges`, which has model, kind, charges, cost and units; and what else a statement tells. */
const lines_and_movements = `
     used as (
       select model, kind, jsonb_object_agg(unit, amount) as units from (
         select model, kind, unit, trim_scale(sum(amount::numeric))::text as amount
           from charges, jsonb_each_text(units) u (unit, amount) group by model, kind, unit) t group by model, kind),
     lines as (
       select model, kind, sum(charges)::text as charges, sum(cost)::text as amount, coalesce(u.units, '{}') as units
         from charges left join used u using (model, kind) group by model, kind, u.units),
     movements as (
       select number, type, available::text as amount, reason, ref, created_at as at from ledger_entries
        where account_id = $1 and type in ('topup', 'adjustment') and created_at >= $2 and created_at < $3
          and number > AFTER)`;

const columns = `(select entries::text from balances where account_id = $1) as through,
            coalesce((select jsonb_agg(to_jsonb(l) order by kind, model) from lines l), '[]') as lines,
            coalesce((select jsonb_agg(to_jsonb(m) - 'number' order by number) from movements m), '[]') as movements`;

/** The money of an account when a time came: as of an entry shortly before, and what was written since. */
const moneyAt = (at: string) => `
  (select coalesce((select available + held from ledger_openings where account_id = $1 and number = n.low),
            (select available_after + held_after from ledger_entries where account_id = $1 and number = n.low), 0)
        + coalesce((select sum(available + held) from ledger_entries e where e.account_id = $1 and e.number > n.low
            and e.number <= n.high and e.created_at < ${at}), 0)
     from (select entry_near($1, ${at}, false) as low, entry_near($1, ${at}, true) as high) n)::text`;

/** One statement of SQL, so that all of it is of one moment, whatever is booked meanwhile. */
const summed_statement = `
  with mark as materialized (
       select coalesce(m.number, 0) as number, b.entries
         from balances b left join usage_marks m using (account_id) where b.account_id = $1),
     charges as materialized (
       select s.model, s.kind, s.charges, s.cost, s.units from usage_sums s
        where s.account_id = $1 and s.step = 'day' and s.start >= $2 and s.start < $3
       union all
       select e.model, e.kind, 1, e.revenue + e.loss, e.units from mark m cross join lateral (
         select * from ledger_entries e where e.account_id = $1 and e.number > m.number and e.number <= m.entries offset 0) e
        where e.type = 'settle' and e.created_at >= $2 and e.created_at < $3),
     ${lines_and_movements.replace('AFTER', '0')}
     select ${moneyAt('$2')} as opening, ${moneyAt('$3')} as closing, ${columns}`;

/** Entries that are not closed, and what the others come to. */
const opened = `coalesce((select number from ledger_openings where account_id = $1), 0)`;
const closed_money = `coalesce((select available + held from ledger_openings where account_id = $1), 0)`;

/** The same from the entries alone. */
async function readStatement(db: Queryable, { account_id, from, to, after = 0n }: Period): Promise<Statement> {
  const rows = await db.query<Row>(
    `with charges as materialized (
       select model, kind, 1 as charges, revenue + loss as cost, units from ledger_entries
        where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3 and number > $4),
     ${lines_and_movements.replace('AFTER', '$4')}
     select (select (coalesce(sum(available + held) filter (where created_at < $2 or number <= $4), 0) + ${closed_money})::text
               from ledger_entries where account_id = $1 and created_at < $3 and number > ${opened}) as opening,
            (select (coalesce(sum(available + held), 0) + ${closed_money})::text from ledger_entries
              where account_id = $1 and created_at < $3 and number > ${opened}) as closing, ${columns}`,
    [account_id, from, to, after],
  );
  const [row] = rows;
  if (!row) throw new Error('the ledger answered nothing');
  return statementIn(row);
}

/** The accounts for which anything was charged, paid in or corrected in a period. */
export async function accountsMoved(db: Queryable, { from, to }: { from: Date; to: Date }): Promise<string[]> {
  const rows = await db.query<{ account_id: string }>(
    // One look into an index for each, in its order: an "exists" might become a join with all that there is.
    `select b.account_id from balances b
      where coalesce(
        (select true from ledger_entries e where e.account_id = b.account_id and e.type = 'settle'
            and e.created_at >= $1 and e.created_at < $2 and e.revenue + e.loss > 0
          order by e.created_at limit 1),
        (select true from ledger_entries e where e.account_id = b.account_id
            and e.type in ('topup', 'adjustment') and e.created_at >= $1 and e.created_at < $2 limit 1))
      order by b.account_id`,
    [from, to],
  );
  return rows.map(({ account_id }) => account_id);
}

/**
 * Returns the charges of each account, or of one, in whole days (UTC): the sums of most of its entries, and the entries
 * since. A look at many accounts reads a row per day, key and model, not per charge.
 */
export async function chargedByAccount(
  db: Queryable,
  { from, to, account_id }: { from: Date; to: Date; account_id?: string },
): Promise<{ account_id: string; charged: Money }[]> {
  return db.query<{ account_id: string; charged: Money }>(
    `select account_id, charged::bigint as charged from (
       select b.account_id, coalesce(s.charged, 0) + coalesce(t.charged, 0) as charged
         from balances b left join usage_marks m using (account_id)
         cross join lateral (select sum(cost) as charged from usage_sums u
           where u.account_id = b.account_id and u.step = 'day' and u.start >= $1 and u.start < $2 offset 0) s
         cross join lateral (select sum(revenue + loss) as charged from ledger_entries e
           where e.account_id = b.account_id and e.number > coalesce(m.number, 0) and e.number <= b.entries
             and e.type = 'settle' and e.created_at >= $1 and e.created_at < $2 offset 0) t
        where $3::text is null or b.account_id = $3) c
      where charged > 0 order by account_id`,
    [from, to, account_id ?? null],
  );
}
