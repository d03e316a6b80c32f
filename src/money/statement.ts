import type { Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

/** What a model cost within a period. */
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
  /** What there was just before, held or not. */
  opening: Money;
  lines: ChargeLine[];
  movements: Movement[];
  charged: Money;
  /** What there was at the end. */
  closing: Money;
};

/**
 * From `from` (inclusive) to `to` (exclusive). One statement, so that all of it is of one moment, whatever is booked
 * meanwhile.
 */
export async function statementOf(
  db: Queryable,
  { account_id, from, to }: { account_id: string; from: Date; to: Date },
): Promise<Statement> {
  type Row = {
    opening: string;
    closing: string;
    lines: (Omit<ChargeLine, 'charges' | 'amount'> & { charges: string; amount: string })[];
    movements: (Omit<Movement, 'amount'> & { amount: string })[];
  };
  const rows = await db.query<Row>(
    `with charges as materialized (
       select model, kind, revenue + loss as cost, units from ledger_entries
        where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3),
     used as (
       select model, kind, jsonb_object_agg(unit, amount) as units from (
         select model, kind, unit, trim_scale(sum(amount::numeric))::text as amount
           from charges, jsonb_each_text(units) u (unit, amount) group by model, kind, unit) t group by model, kind),
     lines as (
       select model, kind, count(*)::text as charges, sum(cost)::text as amount, coalesce(u.units, '{}') as units
         from charges left join used u using (model, kind) group by model, kind, u.units),
     movements as (
       select number, type, available::text as amount, reason, ref, created_at as at from ledger_entries
        where account_id = $1 and type in ('topup', 'adjustment') and created_at >= $2 and created_at < $3)
     select (select coalesce(sum(available + held) filter (where created_at < $2), 0)::text from ledger_entries
              where account_id = $1) as opening,
            (select coalesce(sum(available + held), 0)::text from ledger_entries
              where account_id = $1 and created_at < $3) as closing,
            coalesce((select jsonb_agg(to_jsonb(l) order by kind, model) from lines l), '[]') as lines,
            coalesce((select jsonb_agg(to_jsonb(m) - 'number' order by number) from movements m), '[]') as movements`,
    [account_id, from, to],
  );
  const row = rows[0];
  if (!row) throw new Error('the ledger answered nothing');
  const lines = row.lines.map((line) => ({ ...line, charges: BigInt(line.charges), amount: BigInt(line.amount) }));
  return {
    opening: BigInt(row.opening),
    closing: BigInt(row.closing),
    lines,
    movements: row.movements.map((one) => ({ ...one, amount: BigInt(one.amount), at: new Date(one.at).toISOString() })),
    charged: lines.reduce((sum, { amount }) => sum + amount, 0n),
  };
}

/** The sum of the charges of a period by itself: what a statement must come to. */
export async function chargedBetween(
  db: Queryable,
  { account_id, from, to }: { account_id: string; from: Date; to: Date },
): Promise<Money> {
  const rows = await db.query<{ charged: string }>(
    `select coalesce(sum(revenue + loss), 0)::text as charged from ledger_entries
      where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3`,
    [account_id, from, to],
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
