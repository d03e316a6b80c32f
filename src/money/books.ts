import type { Db, Queryable } from '../db/database.ts';
import { exact } from './money.ts';

/** One thing that does not add up, in words an operator can act on. */
export type Finding = { rule: string; subject: string; detail: string };

export type BooksReport = {
  ok: boolean;
  accounts: number;
  entries: number;
  open_holds: number;
  /** Σ of all differences found, six digits; `0.000000` when the books are exact. */
  difference: string;
  findings: Finding[];
};

/** A rule of DESIGN section 6 as one query: it returns a row for each violation. */
export type Rule = { name: string; sql: string };

const findings_max = 100;

/** A violation as the queries return it; `off_by` in millionths where it can be said. */
type Violation = { subject: string; detail: string; off_by: bigint };

/**
 * Recomputes what must hold from the ledger's entries alone, in one snapshot. Incremental: an
 * account's entries before its mark were checked by an earlier run and cannot have changed since
 * (a trigger refuses it); `full` reads them all again. `more` are the rules of later rooms.
 */
export async function checkBooks(
  db: Db,
  options: { full?: boolean; more?: readonly Rule[] } = {},
): Promise<BooksReport> {
  return db.tx(async (tx) => {
    await tx.query('set transaction isolation level repeatable read');
    if (options.full) await tx.query('delete from book_marks');
    const findings: Finding[] = [];
    let difference = 0n;
    for (const rule of [...rules, ...(options.more ?? [])]) {
      const violations = await tx.query<Violation>(
        `select subject, detail, off_by::bigint from (${rule.sql}) v limit ${findings_max}`,
      );
      for (const { subject, detail, off_by } of violations) {
        findings.push({ rule: rule.name, subject, detail });
        difference += off_by < 0n ? -off_by : off_by;
      }
    }
    if (findings.length === 0) await tx.query(move_marks);
    return {
      ok: findings.length === 0,
      ...(await counts(tx)),
      difference: exact(difference),
      findings,
    };
  });
}

async function counts(tx: Queryable): Promise<{ accounts: number; entries: number; open_holds: number }> {
  const rows = await tx.query<{ accounts: number; entries: number; open_holds: number }>(
    // As double precision the driver hands out numbers; they are exact up to 2^53.
    `select (select count(*) from balances)::float8 as accounts,
            (select coalesce(sum(entries), 0) from balances)::float8 as entries,
            (select count(*) from holds where state = 'open')::float8 as open_holds`,
  );
  return rows[0] ?? { accounts: 0, entries: 0, open_holds: 0 };
}

/** For the rules of later rooms: account_id, ref, kind, amount, state and cost of every hold. */
export const all_holds = `(select account_id, ref, kind, amount, state, cost from holds)`;

/** Entries behind each account's mark, with the running sums they should have left behind. */
const fresh = `
  select e.*, coalesce(m.number, 0) + row_number() over w as number_due,
         coalesce(m.available, 0) + sum(e.available) over w as available_due,
         coalesce(m.held, 0) + sum(e.held) over w as held_due
    from ledger_entries e left join book_marks m using (account_id)
   where e.number > coalesce(m.number, 0)
  window w as (partition by e.account_id order by e.number)`;

const move_marks = `
  insert into book_marks (account_id, number, available, held, checked_at)
    select account_id, entries, amount - held, held, statement_timestamp() from balances
  on conflict (account_id) do update
    set number = excluded.number, available = excluded.available, held = excluded.held, checked_at = excluded.checked_at
    where book_marks.number <> excluded.number`;

const rules: readonly Rule[] = [
  {
    name: 'the legs of every movement add up to nothing',
    sql: `select account_id || ' #' || number as subject, 'legs do not add up' as detail,
                 available + held + topup_source + revenue + loss + adjust as off_by
            from (${fresh}) e where available + held + topup_source + revenue + loss + adjust <> 0`,
  },
  {
    name: 'entries are numbered without gaps and each tells the sums so far',
    sql: `select account_id || ' #' || number as subject,
                 'expected #' || number_due || ', ' || available_due || ' available, ' || held_due || ' held' as detail,
                 abs(available_after - available_due) + abs(held_after - held_due) as off_by
            from (${fresh}) e
           where number <> number_due or available_after <> available_due or held_after <> held_due`,
  },
  {
    name: 'a balance is the sum of its entries',
    sql: `select b.account_id as subject, 'balance row and ledger differ' as detail,
                 abs(b.amount - b.held - coalesce(s.available, 0)) + abs(b.held - coalesce(s.held, 0)) as off_by
            from balances b left join (
              select account_id, sum(available) as available, sum(held) as held, sum(entries) as entries from (
                select account_id, available, held, 1 as entries from (${fresh}) e
                union all select account_id, available, held, number from book_marks) p
              group by account_id) s using (account_id)
           where b.amount - b.held <> coalesce(s.available, 0) or b.held <> coalesce(s.held, 0)
              or b.entries <> coalesce(s.entries, 0)`,
  },
  {
    name: 'held is the sum of the open holds of the account',
    sql: `select b.account_id as subject, 'held differs from open holds' as detail, b.held - coalesce(h.amount, 0) as off_by
            from balances b left join (select account_id, sum(amount) as amount from holds where state = 'open' group by account_id) h
                 using (account_id)
           where b.held <> coalesce(h.amount, 0)`,
  },
  {
    name: 'held is the sum of the open holds of the key',
    sql: `select k.key_id as subject, 'held differs from open holds' as detail, k.held - coalesce(h.amount, 0) as off_by
            from budgets k left join (select key_id, sum(amount) as amount from holds where state = 'open' group by key_id) h
                 using (key_id)
           where k.held <> coalesce(h.amount, 0)`,
  },
  {
    name: 'what a key spent in its month is the sum of its charges',
    sql: `select k.key_id as subject, 'spent differs from the charges of ' || k.month as detail, k.spent - coalesce(s.cost, 0) as off_by
            from budgets k left join lateral (
              select sum(revenue + loss) as cost from ledger_entries e
               where e.account_id = k.account_id and e.key_id = k.key_id and e.month = k.month and e.type = 'settle') s on true
           where k.spent <> coalesce(s.cost, 0)`,
  },
  {
    name: 'every hold has its entry, every closed one exactly one end, of the same amount',
    sql: `select h.account_id || ' ' || h.ref as subject, 'hold and ledger differ' as detail,
                 abs(h.amount - coalesce(o.held, 0)) + abs(coalesce(h.cost, 0) - coalesce(c.revenue + c.loss, 0)) as off_by
            from holds h
            left join ledger_entries o on o.account_id = h.account_id and o.event_key = 'hold:' || h.ref
            left join ledger_entries c on c.account_id = h.account_id and c.event_key = 'settle:' || h.ref
            left join book_marks m on m.account_id = h.account_id
           where (h.state = 'open' or coalesce(c.number, 0) = 0 or c.number > coalesce(m.number, 0))
             and (o.held is distinct from h.amount
               or (h.state = 'open') <> (c.number is null)
               or (h.state = 'settled' and (c.type <> 'settle' or c.revenue + c.loss <> h.cost or c.held <> -h.amount))
               or (h.state = 'released' and (c.type <> 'release' or c.available <> h.amount)))`,
  },
  {
    name: 'every hold entry belongs to a hold',
    sql: `select e.account_id || ' ' || e.event_key as subject, 'entry without a hold' as detail, e.held as off_by
            from (${fresh}) e left join holds h on h.account_id = e.account_id and h.ref = e.ref
           where e.type in ('hold', 'settle', 'release') and h.ref is null`,
  },
  {
    name: 'one currency per account',
    sql: `select e.account_id || ' #' || e.number as subject, 'booked in ' || e.currency as detail, 0 as off_by
            from (${fresh}) e join balances b using (account_id) where e.currency <> b.currency`,
  },
  {
    name: 'money in − costs − corrections = balances, per currency',
    sql: `select b.currency as subject, 'top-ups, costs and balances differ' as detail, b.amount - coalesce(l.amount, 0) as off_by
            from (select currency, sum(amount) as amount from balances group by currency) b
            left join (select currency, -sum(topup_source + revenue + loss + adjust) as amount from ledger_entries group by currency) l
                 using (currency)
           where b.amount <> coalesce(l.amount, 0)`,
  },
];
