import type { Db, Queryable } from '../db/database.ts';
import { exact } from './money.ts';

/** One thing that does not add up, in words an operator can act on. */
export type Finding = { rule: string; subject: string; detail: string };

export type BooksReport = {
  ok: boolean;
  accounts: number;
  entries: number;
  open_holds: number;
  /** Σ of all differences found, six digits. One wrong row can break several rules; see `ok` first. */
  difference: string;
  /** At most 100 of each rule. */
  findings: Finding[];
};

/** A rule of DESIGN section 6 as one query: it returns a row for each violation. */
export type Rule = { name: string; sql: string };

const findings_max = 100;

/** A violation as the queries return it; `off_by` in millionths where it can be said. `total`: over all of its rule. */
type Violation = { subject: string; detail: string; total: bigint };

/**
 * Recomputes what must hold from the ledger's entries alone, in one snapshot. Incremental: an
 * account's entries before its mark were checked by an earlier run and cannot have changed since
 * (a trigger refuses it); `full` reads them all again. `more` are the rules of later rooms.
 */
export async function checkBooks(
  db: Db,
  options: { full?: boolean; more?: readonly Rule[] } = {},
): Promise<BooksReport> {
  const rules = [...money_rules, ...(options.full ? full_rules : []), ...(options.more ?? [])];
  return db.tx(async (tx) => {
    await tx.query('set transaction isolation level repeatable read');
    if (options.full) await forgetMarks(tx);
    const findings: Finding[] = [];
    let difference = 0n;
    for (const rule of rules) {
      const violations = await violationsOf(tx, rule);
      for (const { subject, detail } of violations) findings.push({ rule: rule.name, subject, detail });
      difference += violations[0]?.total ?? 0n;
    }
    const ok = findings.length === 0;
    if (ok) for (const statement of move_marks) await tx.query(statement);
    return { ok, ...(await counts(tx)), difference: exact(difference), findings };
  });
}

async function forgetMarks(tx: Queryable): Promise<void> {
  await tx.query('delete from book_marks');
  await tx.query('delete from book_key_marks');
}

async function violationsOf(tx: Queryable, rule: Rule): Promise<Violation[]> {
  return tx.query<Violation>(
    `select subject, detail, sum(abs(off_by)) over ()::bigint as total from (${rule.sql}) v limit ${findings_max}`,
  );
}

async function counts(tx: Queryable): Promise<{ accounts: number; entries: number; open_holds: number }> {
  const rows = await tx.query<{ accounts: number; entries: number; open_holds: number }>(
    // As double precision the driver hands out numbers; they are exact up to 2^53.
    `select (select count(*) from balances)::float8 as accounts,
            (select coalesce(sum(entries), 0) from balances)::float8 as entries,
            (select count(*) from open_holds)::float8 as open_holds`,
  );
  return rows[0] ?? { accounts: 0, entries: 0, open_holds: 0 };
}

/** For the rules of later rooms: account_id, ref, kind, amount, state and cost of every hold. */
export const all_holds = `(select account_id, ref, kind, amount, state, cost from holds)`;

/**
 * Entries behind each account's mark, with the number and the sums they should carry. One index range
 * per account: a run pays for what is new, not for all that is there.
 */
const fresh = `
  select e.*, coalesce(m.number, 0) + row_number() over w as number_due,
         coalesce(m.available, 0) + sum(e.available) over w as available_due,
         coalesce(m.held, 0) + sum(e.held) over w as held_due
    from balances b left join book_marks m using (account_id)
    join lateral (select * from ledger_entries e
      where e.account_id = b.account_id and e.number > coalesce(m.number, 0) offset 0) e on true
  window w as (partition by e.account_id order by e.number)`;

const move_marks = [
  `insert into book_marks (account_id, number, available, held)
     select account_id, entries, amount - held, held from balances
   on conflict (account_id) do update set number = excluded.number, available = excluded.available, held = excluded.held
     where book_marks.number <> excluded.number`,
  `insert into book_key_marks (key_id, month, spent) select key_id, month, spent from budgets
   on conflict (key_id) do update set month = excluded.month, spent = excluded.spent
     where book_key_marks.month <> excluded.month or book_key_marks.spent <> excluded.spent`,
];

/** The rules of this room; those of tasks and later rooms are handed to checkBooks as `more`. */
export const money_rules: readonly Rule[] = [
  {
    name: 'the legs of every movement add up to nothing',
    sql: `select account_id || ' #' || number as subject, 'legs do not add up' as detail,
                 available + held + topup_source + revenue + loss + adjust as off_by
            from (${fresh}) e where available + held + topup_source + revenue + loss + adjust <> 0`,
  },
  {
    name: 'every movement is between the books of its type',
    sql: `select account_id || ' #' || number as subject, type || ' touches another book' as detail, abs(strange) as off_by
            from (select *, case type
                when 'topup' then abs(held) + abs(revenue) + abs(loss) + abs(adjust) + greatest(-available, 0)
                when 'hold' then abs(topup_source) + abs(revenue) + abs(loss) + abs(adjust) + greatest(-held, 0)
                when 'settle' then abs(topup_source) + abs(adjust) + greatest(held, 0) + greatest(-revenue, 0)
                  + greatest(loss, 0) + greatest(-revenue - loss, 0)
                when 'release' then abs(topup_source) + abs(revenue) + abs(loss) + abs(adjust) + greatest(held, 0)
                else abs(held) + abs(topup_source) + abs(revenue) + abs(loss) end as strange
              from (${fresh}) e) e where strange <> 0`,
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
    name: 'available and held are never below zero',
    sql: `select account_id as subject, 'below zero' as detail, greatest(-held, 0) + greatest(held - amount, 0) as off_by
            from balances where held < 0 or amount < held
          union all
          select key_id, 'spent or held below zero', greatest(-held, 0) + greatest(-spent, 0)
            from budgets where held < 0 or spent < 0
          union all
          select account_id || ' #' || number, 'below zero afterwards',
                 greatest(-available_after, 0) + greatest(-held_after, 0)
            from (${fresh}) e where available_after < 0 or held_after < 0`,
  },
  {
    name: 'held is the sum of the open holds of the account',
    sql: `select account_id as subject, 'held differs from open holds' as detail,
                 coalesce(b.held, 0) - coalesce(h.amount, 0) as off_by
            from balances b full join (select account_id, sum(amount) as amount from open_holds group by account_id) h
                 using (account_id)
           where coalesce(b.held, 0) <> coalesce(h.amount, 0)`,
  },
  {
    name: 'held is the sum of the open holds of the key',
    sql: `select key_id as subject, 'held differs from open holds' as detail,
                 coalesce(k.held, 0) - coalesce(h.amount, 0) as off_by
            from budgets k full join (
              select account_id, key_id, sum(amount) as amount from open_holds group by account_id, key_id) h
                 using (account_id, key_id)
           where coalesce(k.held, 0) <> coalesce(h.amount, 0)`,
  },
  {
    name: 'what a key spent in its month is the sum of its charges',
    sql: `select k.key_id as subject, 'spent differs from the charges of ' || k.month as detail,
                 k.spent - coalesce(m.spent, 0) - coalesce(s.cost, 0) as off_by
            from budgets k left join book_key_marks m on m.key_id = k.key_id and m.month = k.month
            left join (select account_id, key_id, month, sum(revenue + loss) as cost
                         from (${fresh}) e where type = 'settle' group by account_id, key_id, month) s
                 on s.account_id = k.account_id and s.key_id = k.key_id and s.month = k.month
           where k.spent <> coalesce(m.spent, 0) + coalesce(s.cost, 0)`,
  },
  {
    name: 'every movement counts in a month between its own and that of its key',
    sql: `select e.account_id || ' #' || e.number as subject, 'counts in ' || e.month as detail, abs(e.held) as off_by
            from (${fresh}) e left join budgets k on k.key_id = e.key_id and k.account_id = e.account_id
           where e.key_id is not null and (k.key_id is null or e.month > k.month
              or e.month < date_trunc('month', e.created_at at time zone 'UTC'))`,
  },
  {
    name: 'every open hold has its entry, and no end',
    sql: `select h.account_id || ' ' || h.ref as subject, 'open hold and ledger differ' as detail,
                 abs(h.amount - coalesce(o.held, 0)) as off_by
            from open_holds h
            left join ledger_entries o on o.account_id = h.account_id and o.ref = h.ref and o.event = 'hold'
            left join ledger_entries c on c.account_id = h.account_id and c.ref = h.ref and c.event = 'close'
           where o.held is distinct from h.amount or o.key_id <> h.key_id or o.model <> h.model or o.kind <> h.kind
              or c.number is not null`,
  },
  {
    name: 'every end closes an earlier hold of the same amount and key',
    sql: `select c.account_id || ' ' || c.ref as subject, c.type || ' without its hold' as detail,
                 abs(c.held + coalesce(o.held, 0)) as off_by
            from (${fresh}) c
            left join ledger_entries o on o.account_id = c.account_id and o.ref = c.ref and o.event = 'hold'
           where c.type in ('settle', 'release')
             and (o.held is distinct from -c.held or o.number > c.number or o.key_id <> c.key_id or o.model <> c.model
               or o.kind <> c.kind)`,
  },
  {
    name: 'every hold is open or has an end',
    sql: `select o.account_id || ' ' || o.ref as subject, 'neither open nor closed' as detail, o.held as off_by
            from (${fresh}) o
           where o.type = 'hold'
             and not exists (select from open_holds h where h.account_id = o.account_id and h.ref = o.ref)
             and not exists (select from ledger_entries c
                   where c.account_id = o.account_id and c.ref = o.ref and c.event = 'close')`,
  },
  {
    name: 'one currency per account',
    sql: `select e.account_id || ' #' || e.number as subject, 'booked in ' || e.currency as detail, abs(e.held) as off_by
            from (${fresh}) e join balances b using (account_id) where e.currency <> b.currency`,
  },
  {
    name: 'money in − costs − corrections = balances, per currency',
    sql: `select currency as subject, 'top-ups, costs and balances differ' as detail, sum(off) as off_by from (
              select currency, amount as off from balances
              union all select b.currency, -m.available - m.held from book_marks m join balances b using (account_id)
              union all select currency, topup_source + revenue + loss + adjust from (${fresh}) e) s
           group by currency having sum(off) <> 0`,
  },
];

/** What only a full run looks at: entries of accounts that there are not. */
export const full_rules: readonly Rule[] = [
  {
    name: 'every entry belongs to an account',
    sql: `select e.account_id || ' #' || e.number as subject, 'there is no such account' as detail,
                 abs(e.available) + abs(e.held) as off_by
            from ledger_entries e where not exists (select from balances b where b.account_id = e.account_id)`,
  },
];
