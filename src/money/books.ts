import type { Db, Queryable } from '../db/database.ts';
import { full_rules } from './full-books.ts';
import type { Rule, TableScan } from './rule.ts';
import { exact } from './money.ts';

/** A broken rule, in words that an operator can act on. */
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

const findings_max = 100;

/** A query for several rules. Each row has the name of the broken one. */
type RuleQuery = { names: readonly string[]; sql: string };

/** A row of a RuleQuery. `total`: the sum of the differences of all its rows, in millionths. */
type Violation = { name: string; subject: string; detail: string; total: bigint };

export type BooksOptions = {
  /** Everything is read again, whatever was checked before. */
  full?: boolean;
  /** The rules of later modules. */
  more?: readonly Rule[];
  /** Scans begin here: older rows were checked before. */
  since?: Date;
  /** Ends the check early, by an error. */
  stopped?: AbortSignal;
};

/** Findings of a check so far. */
type Tally = { findings: Finding[]; difference: bigint };

/**
 * Recomputes what must hold from the ledger's entries alone. Incremental: an account's entries before its mark were
 * checked by an earlier run and cannot have changed since (a trigger refuses it); `full` reads them all again. What is
 * read is read in parts, each in a snapshot of its own, so that none is held for long.
 */
export async function checkBooks(db: Db, options: BooksOptions = {}): Promise<BooksReport> {
  const { full = false, more = [], since, stopped } = options;
  const tally: Tally = { findings: [], difference: 0n };
  if (full) await resetMarks(db);
  await checkEntries(db, tally, stopped);
  await db.tx(async (tx) => {
    await tx.query('set transaction isolation level repeatable read');
    for (const query of standing_queries) add(tally, await violationsOf(tx, query, [null, no_limit]));
  });
  const rules = [...(full ? full_rules : []), ...more];
  for (const rule of rules) if (!rule.scan) add(tally, await violationsOf(db, queryOf(rule)));
  for (const scan of new Set(rules.map((rule) => rule.scan))) {
    if (scan === undefined) continue;
    const queries = rules.filter((rule) => rule.scan === scan).map(queryOf);
    for await (const part of partsOf(db, scan, full ? undefined : since)) {
      for (const query of queries) add(tally, await violationsOf(db, query, part));
      stopped?.throwIfAborted();
    }
  }
  const { findings, difference } = tally;
  return { ok: findings.length === 0, ...(await counts(db)), difference: exact(difference), findings };
}

function add(tally: Tally, violations: readonly Violation[]): void {
  for (const { name, subject, detail } of violations) tally.findings.push({ rule: name, subject, detail });
  tally.difference += violations[0]?.total ?? 0n;
}

/** Returns the parts of a table: above the first time, up to the second. As texts, which have microseconds. */
async function* partsOf(
  db: Queryable,
  { table, time, rows }: TableScan,
  since?: Date,
): AsyncGenerator<[string, string]> {
  for (let from = since?.toISOString() ?? '-infinity'; ;) {
    const [next] = await db.query<{ last: string | null; count: bigint }>(
      `select max(at)::text as last, count(*) as count
         from (select ${time} as at from ${table} where ${time} > $1::timestamptz order by ${time} limit ${rows}) r`,
      [from],
    );
    const last = next?.count === BigInt(rows) ? next.last : null;
    yield [from, last ?? 'infinity'];
    if (last === null) return;
    from = last;
  }
}

function queryOf(rule: Rule): RuleQuery {
  return {
    names: [rule.name],
    sql: `select ${quoted(rule.name)} as name, subject, detail, off_by from (${rule.sql}) r`,
  };
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

async function resetMarks(db: Db): Promise<void> {
  await db.tx(async (tx) => {
    await tx.query('delete from book_marks');
    await tx.query('delete from book_key_marks');
    // Closed entries are not read again: the rest must follow from their sums.
    await tx.query(`insert into book_marks (account_id, number, available, held)
      select account_id, number, available, held from ledger_openings`);
    await tx.query(
      'insert into book_key_marks (key_id, month, spent) select key_id, month, spent from ledger_closed_keys',
    );
    await tx.query('delete from book_budget_marks');
  });
}

async function violationsOf(db: Queryable, { sql }: RuleQuery, values: readonly unknown[] = []): Promise<Violation[]> {
  return db.query<Violation>(
    `select name, subject, detail, sum(abs(off_by)) over ()::bigint as total from (${sql}) v limit ${findings_max}`,
    sql.includes('$1') ? values : [],
  );
}

async function counts(db: Queryable): Promise<{ accounts: number; entries: number; open_holds: number }> {
  const rows = await db.query<{ accounts: number; entries: number; open_holds: number }>(
    // As double precision the driver hands out numbers; they are exact up to 2^53.
    `select (select count(*) from balances)::float8 as accounts,
            (select coalesce(sum(entries), 0) from balances)::float8 as entries,
            (select count(*) from open_holds)::float8 as open_holds`,
  );
  return rows[0] ?? { accounts: 0, entries: 0, open_holds: 0 };
}

/** For the rules of later modules: account_id, ref, kind and amount of every open hold. */
export const open_holds = `(select account_id, ref, kind, amount from open_holds)`;

/** SQL for the same rules: state, amount and cost of the hold of one task or call; no row if it never had any. */
export const holdOf = (account_id: string, ref: string) => `lateral (
  select 'open' as state, o.amount, null::bigint as cost from open_holds o
   where o.account_id = ${account_id} and o.ref = ${ref}
  union all (
  select case e.type when 'settle' then 'settled' else 'released' end, -e.held,
         case e.type when 'settle' then e.revenue + e.loss end from ledger_entries e
   where e.ref = ${ref} and e.event in ('close', 'late') and e.account_id is not distinct from ${account_id}
   order by e.event desc limit 1) offset 0)`;

/** SQL for the same rules: the cost that the upstream charges for the run or call that ended with the hold. */
export const upstreamCostOf = (account_id: string, ref: string) => `lateral (
  select e.upstream_cost as cost from ledger_entries e
   where e.ref = ${ref} and e.event in ('close', 'late') and e.account_id is not distinct from ${account_id}
   order by e.event desc limit 1)`;

/** For the same: account_id, created_at and amount of every charge; of months that were closed, of all together. */
export const all_charges = `(
  select e.account_id, e.created_at, e.revenue + e.loss as charged
    from ledger_entries e left join ledger_openings n using (account_id)
   where e.type = 'settle' and e.number > coalesce(n.number, 0)
  union all
  select account_id, month::timestamp at time zone 'UTC', charged from ledger_closed_months)`;

/**
 * New entries: those after the mark of each account, at most $2 of each, of the accounts $1, or of all. One index range per account: a
 * run pays for what is new, not for all that is there, whatever the planner believes of the tables' sizes. Hence
 * `offset 0`, and `is not distinct from` for what the index of events should not be left for (see
 * sql/migrations/0100_baseline.sql).
 */
const fresh = `
  select e.* from balances b left join book_marks m using (account_id)
    join lateral (select * from ledger_entries e
      where e.account_id = b.account_id and e.number > coalesce(m.number, 0)
        and e.number <= coalesce(m.number, 0) + $2::bigint offset 0) e on true
   where ($1::text[] is null or b.account_id = any ($1))`;

/** Entries that are checked in one snapshot, which takes a third of a second. */
const step = 50_000n;

/** A limit above any number of entries. */
const no_limit = 10n ** 15n;

/** Checks the entries that are behind the marks by now, and moves the marks of accounts of which all are right. */
async function checkEntries(db: Db, tally: Tally, stopped?: AbortSignal): Promise<void> {
  let behind = await db.query<{ account_id: string; count: bigint }>(
    `select account_id, b.entries - coalesce(m.number, 0) as count from balances b left join book_marks m using (account_id)
      where b.entries > coalesce(m.number, 0) order by account_id`,
  );
  while (behind.length > 0) {
    stopped?.throwIfAborted();
    let room = step;
    const chosen = behind.filter(({ count }) => {
      const fits = room > 0n;
      room -= count;
      return fits;
    });
    const violations = await checkStep(
      db,
      chosen.map(({ account_id }) => account_id),
    );
    add(tally, violations);
    const more = violations.length > 0 ? [] : chosen.map((one) => ({ ...one, count: one.count - step }));
    behind = [...more.filter(({ count }) => count > 0n), ...behind.slice(chosen.length)];
  }
}

/** Checks entries of accounts. Marks move only past entries that were checked in the same snapshot, by one run at a time. */
async function checkStep(db: Db, account_ids: readonly string[]): Promise<Violation[]> {
  return db.tx(async (tx) => {
    await tx.query('set transaction isolation level repeatable read');
    await tx.query('lock table book_marks in share row exclusive mode'); // takes no snapshot yet
    const violations = await violationsOf(tx, entries, [account_ids, step]);
    if (violations.length > 0) return violations;
    for (const statement of move_marks) await tx.query(statement, [account_ids, step]);
    return [];
  });
}

/** Charges of hard budgets among the fresh entries, after the entry from which on each counts. */
const charges_of_budgets = `
  select a.id, a.since, sum(e.revenue + e.loss)::bigint as charged
    from (${fresh} and b.hard_budgets > 0) e join budgets own on own.key_id = e.key_id and own.account_id = e.account_id
    join budgets k on k.key_id = coalesce(own.shares, own.key_id)
    join account_budgets a on a.account_id = e.account_id and a.is_hard and a.since < e.number
      and is_in_budget(a.scope, a.subject, e.project_id, k.key_id, k.member_id)
   where e.type = 'settle' group by a.id, a.since`;

/** Those of keys and budgets first: `fresh` begins at those of accounts. Of a key only its last month counts. */
const move_marks = [
  `insert into book_budget_marks as m (budget_id, since, spent)
     select id, since, charged from (${charges_of_budgets}) c
   on conflict (budget_id) do update set since = excluded.since,
     spent = excluded.spent + case when m.since = excluded.since then m.spent else 0 end`,
  `insert into book_key_marks as k (key_id, month, spent)
     select distinct on (1) coalesce(own.shares, own.key_id), e.month, sum(e.revenue + e.loss)::bigint
       from (${fresh}) e join budgets own on own.key_id = e.key_id and own.account_id = e.account_id
      group by 1, 2 order by 1, 2 desc
   on conflict (key_id) do update set month = excluded.month,
     spent = excluded.spent + case when k.month = excluded.month then k.spent else 0 end`,
  `insert into book_marks as m (account_id, number, available, held)
     select account_id, max(number), sum(available)::bigint, sum(held)::bigint from (${fresh}) e group by account_id
   on conflict (account_id) do update set number = excluded.number, available = m.available + excluded.available,
     held = m.held + excluded.held`,
];

/** A rule about one entry: it is broken where `wrong` is true. */
type EntryRule = { name: string; wrong: string; detail: string; off_by: string };

/** A chat may be answered by another model than its hold names: by one whose route is in the same entry. */
const other_model = `o.model <> e.model and (e.kind <> 'chat' or not starts_with(coalesce(e.route, ''), e.model || '#'))`;

/** `e` is the entry, `p` the one before it, `o` the other end of its hold, `h` the open hold, `k` the budget of its key. */
const entry_rules: readonly EntryRule[] = [
  {
    name: 'the legs of every movement add up to nothing',
    wrong:
      'e.available + e.held + e.topup_source + e.revenue + e.loss + e.adjust <> 0 or e.upstream_cost + e.upstream_owed <> 0',
    detail: `'legs do not add up'`,
    off_by: `abs(e.available + e.held + e.topup_source + e.revenue + e.loss + e.adjust)
      + abs(e.upstream_cost + e.upstream_owed)`,
  },
  {
    name: 'every movement is between the books of its type',
    wrong: `case e.type
      when 'topup' then e.available <= 0 or e.held <> 0 or e.revenue <> 0 or e.loss <> 0 or e.adjust <> 0
      when 'hold' then e.held < 0 or e.topup_source <> 0 or e.revenue <> 0 or e.loss <> 0 or e.adjust <> 0
      when 'settle' then e.held > 0 or e.topup_source <> 0 or e.revenue < 0 or e.loss > 0 or e.adjust <> 0
        or e.revenue + e.loss < 0
      when 'release' then e.held > 0 or e.topup_source <> 0 or e.revenue <> 0 or e.loss <> 0 or e.adjust <> 0
      when 'upstream' then e.available <> 0 or e.held <> 0 or e.topup_source <> 0 or e.revenue <> 0 or e.loss <> 0
        or e.adjust <> 0
      else e.held <> 0 or e.topup_source <> 0 or e.revenue <> 0 or e.loss <> 0 end`,
    detail: `'a ' || e.type || ' touches another book'`,
    off_by: 'greatest(abs(e.topup_source), abs(e.revenue), abs(e.loss), abs(e.adjust))',
  },
  {
    name: 'what an upstream charges has a source, and belongs to a run or a call',
    wrong: `case when e.upstream_basis in ('told', 'rows', 'counted', 'free')
        then e.upstream_cost < 0 or e.upstream_base is null or e.upstream_unknown <> 0
      else e.upstream_cost <> 0 or e.upstream_unknown <> case e.upstream_basis when 'unknown' then 1 when 'stopped' then -1 else 0 end
      end or e.upstream_basis is not null and (e.provider is null or e.route is null or e.type in ('topup', 'hold', 'adjustment'))`,
    detail: `coalesce(e.upstream_basis, 'no source')`,
    off_by: 'abs(e.upstream_cost)',
  },
  {
    name: 'entries are numbered without gaps and each tells the sums so far',
    wrong: `e.number <> 1 and p.number is null
      or e.available_after <> coalesce(p.available_after, 0) + e.available
      or e.held_after <> coalesce(p.held_after, 0) + e.held`,
    detail: `'it does not follow from the entry before it'`,
    off_by: `case when e.number = 1 or p.number is not null
      then abs(e.available_after - coalesce(p.available_after, 0) - e.available)
        + abs(e.held_after - coalesce(p.held_after, 0) - e.held) else 0 end`,
  },
  {
    name: 'available and held are never below zero',
    wrong: 'e.available_after < 0 or e.held_after < 0',
    detail: `'below zero afterwards'`,
    off_by: 'greatest(-e.available_after, 0) + greatest(-e.held_after, 0)',
  },
  {
    name: 'every movement counts in a month between its own and that of its key',
    wrong: `e.month < date_trunc('month', e.created_at at time zone 'UTC')
      or e.key_id is not null and (k.key_id is null or e.month > k.month)`,
    detail: `'counts in ' || e.month`,
    off_by: 'abs(e.held)',
  },
  {
    name: 'every end closes an earlier hold of the same amount and key',
    wrong: `e.event = 'close' and (o.held is distinct from -e.held or o.number > e.number
      or o.key_id <> e.key_id or ${other_model} or o.kind <> e.kind)`,
    detail: `e.type || ' without its hold'`,
    off_by: 'abs(e.held + coalesce(o.held, 0))',
  },
  {
    name: 'a late charge follows the release of its hold',
    wrong: `e.event = 'late' and (o.type is distinct from 'release' or o.number > e.number
      or o.key_id <> e.key_id or ${other_model} or o.kind <> e.kind)`,
    detail: `'a late charge without a released hold'`,
    off_by: 'abs(e.available)',
  },
  {
    name: 'every hold is open or has an end',
    wrong: `e.event = 'hold' and o.number is null and h.ref is null`,
    detail: `'neither open nor closed'`,
    off_by: 'e.held',
  },
  {
    name: 'one currency per account',
    wrong: 'e.currency <> b.currency',
    detail: `'booked in ' || e.currency`,
    off_by: 'abs(e.available) + abs(e.held)',
  },
];

/** All of them in one pass; only an entry that breaks one pays for telling which. */
const entries: RuleQuery = {
  names: entry_rules.map((rule) => rule.name),
  sql: `select v.name, e.account_id || ' #' || e.number as subject, v.detail, v.off_by
    from (${fresh}) e join balances b using (account_id)
    left join budgets own on own.key_id = e.key_id and own.account_id = e.account_id
    left join budgets k on k.key_id = coalesce(own.shares, own.key_id)
    left join ledger_openings n on n.account_id = e.account_id
    left join lateral (select number, available_after, held_after from ledger_entries p
        where p.account_id = e.account_id and p.number = e.number - 1 and p.number > coalesce(n.number, 0)
      union all select n.number, n.available, n.held where n.number = e.number - 1 offset 0) p on true
    left join lateral (select number, type, held, key_id, model, kind from ledger_entries o
      where e.event in ('hold', 'close', 'late') and o.ref = e.ref and o.account_id is not distinct from e.account_id
        and o.event = case e.event when 'close' then 'hold' else 'close' end offset 0) o on true
    left join lateral (select ref from open_holds h
      where e.event = 'hold' and o.number is null and h.account_id = e.account_id and h.ref = e.ref offset 0) h on true
    join lateral (values ${entry_rules
      .map((rule) => `(${quoted(rule.name)}, ${rule.detail}, (${rule.off_by})::numeric, ${rule.wrong})`)
      .join(', ')}) v (name, detail, off_by, wrong) on v.wrong
   where ${entry_rules.map((rule) => `(${rule.wrong})`).join(' or ')}`,
};

/** Compares balances and budgets with the sums of their entries: those before the marks, and the fresh ones. */
const sums: RuleQuery = {
  names: [
    'a balance is the sum of its entries',
    'what a key spent in its month is the sum of its charges',
    'what a budget spent in its period is the sum of its charges',
    'money in − costs − corrections = balances, per currency',
  ],
  sql: `with sums as materialized (
      select account_id, currency, key_id, month, count(*) as entries, sum(available) as available, sum(held) as held,
             sum(topup_source + revenue + loss + adjust) as others, sum(revenue + loss) as charged
        from (${fresh}) e group by account_id, currency, key_id, month)
    select 'a balance is the sum of its entries' as name, b.account_id as subject, 'balance row and ledger differ' as detail,
           abs(b.amount - b.held - coalesce(m.available, 0) - coalesce(s.available, 0))
             + abs(b.held - coalesce(m.held, 0) - coalesce(s.held, 0)) as off_by
      from balances b left join book_marks m using (account_id)
      left join (select account_id, sum(entries) as entries, sum(available) as available, sum(held) as held
                   from sums group by account_id) s using (account_id)
     where b.amount - b.held <> coalesce(m.available, 0) + coalesce(s.available, 0)
        or b.held <> coalesce(m.held, 0) + coalesce(s.held, 0)
        or b.entries <> coalesce(m.number, 0) + coalesce(s.entries, 0)
    union all
    select 'what a key spent in its month is the sum of its charges', k.key_id, 'spent differs from the charges of ' || k.month,
           k.spent - coalesce(m.spent, 0) - coalesce(s.charged, 0)
      from budgets k left join book_key_marks m on m.key_id = k.key_id and m.month = k.month
      left join (select s.account_id, coalesce(shares, key_id) as key_id, s.month, sum(charged) as charged
                   from sums s join budgets using (key_id) group by 1, 2, 3) s
           on s.account_id = k.account_id and s.key_id = k.key_id and s.month = k.month
     where k.spent <> coalesce(m.spent, 0) + coalesce(s.charged, 0)
    union all
    select 'what a budget spent in its period is the sum of its charges', a.id, 'spent differs from its charges',
           a.spent - a.opening - coalesce(m.spent, 0) - coalesce(s.charged, 0)
      from account_budgets a left join book_budget_marks m on m.budget_id = a.id and m.since = a.since
      left join (${charges_of_budgets}) s on s.id = a.id
     where a.is_hard and a.spent <> a.opening + coalesce(m.spent, 0) + coalesce(s.charged, 0)
    union all
    select 'money in − costs − corrections = balances, per currency', currency, 'top-ups, costs and balances differ', sum(off)
      from (select currency, amount as off from balances
            union all select b.currency, -m.available - m.held from book_marks m join balances b using (account_id)
            union all select currency, others from sums) s
     group by currency having sum(off) <> 0`,
};

/** Rules about balances, budgets and open holds: small tables, read anew each time. */
const standing_rules: readonly Rule[] = [
  {
    name: 'no balance and no budget is below zero',
    sql: `select account_id as subject, 'below zero' as detail, greatest(-held, 0) + greatest(held + exposed - amount, 0) as off_by
            from balances where held < 0 or exposed < 0 or amount < held + exposed
          union all
          select key_id, 'spent or held below zero', greatest(-held, 0) + greatest(-spent, 0)
            from budgets where held < 0 or spent < 0`,
  },
  {
    // What stood when a limit was lowered is not taken back: `budgets` in sql/migrations/0100_baseline.sql.
    name: 'no key spends and holds more than its limit',
    sql: `select key_id as subject, 'more than the limit of the key' as detail,
                 spent + held - greatest(limit_month, allowed) as off_by
            from budgets cross join lateral (
              select limited_held + case when month = limited_month then limited_spent else 0 end as allowed) a
           where spent + held > greatest(limit_month, allowed) and limit_month is not null`,
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
              select h.account_id, coalesce(shares, key_id) as key_id, sum(amount) as amount
                from open_holds h left join budgets using (key_id) group by 1, 2) h
                 using (account_id, key_id)
           where coalesce(k.held, 0) <> coalesce(h.amount, 0)`,
  },
  {
    name: 'exposed is what the open holds of the account and of the key may cost beyond them',
    sql: `select account_id as subject, 'exposed differs from open holds' as detail,
                 coalesce(b.exposed, 0) - coalesce(h.exposed, 0) as off_by
            from balances b full join (select account_id, sum(o.exposed) as exposed from open_holds o group by account_id) h
                 using (account_id)
           where coalesce(b.exposed, 0) <> coalesce(h.exposed, 0)
          union all
          select key_id, 'exposed differs from open holds', coalesce(k.exposed, 0) - coalesce(h.exposed, 0)
            from budgets k full join (
              select h.account_id, coalesce(shares, key_id) as key_id, sum(h.exposed) as exposed
                from open_holds h left join budgets using (key_id) group by 1, 2) h
                 using (account_id, key_id)
           where coalesce(k.exposed, 0) <> coalesce(h.exposed, 0)`,
  },
  {
    name: 'held and exposed of a budget are those of its open holds, and no budget is passed',
    sql: `select a.id as subject, 'held or exposed differs from open holds' as detail,
                 abs(a.held - coalesce(h.amount, 0)) + abs(a.exposed - coalesce(h.exposed, 0)) as off_by
            from account_budgets a left join (
              select o.account_id, i.id, sum(o.amount) as amount, sum(o.exposed) as exposed
                from open_holds o cross join unnest(o.budget_ids) i (id) group by 1, 2) h using (account_id, id)
           where a.is_hard and (a.held <> coalesce(h.amount, 0) or a.exposed <> coalesce(h.exposed, 0))
          union all
          select id, 'more than the amount of the budget', spent + held + exposed - greatest(amount, allowed)
            from account_budgets where is_hard and spent + held + exposed > greatest(amount, allowed)
          union all
          select account_id, 'the balance counts ' || b.hard_budgets || ' hard budgets', 0
            from balances b left join (select account_id, count(*) as count from account_budgets where is_hard group by 1) a
                 using (account_id)
           where b.hard_budgets <> coalesce(a.count, 0)`,
  },
  {
    name: 'what was closed of a ledger is a part of it',
    sql: `select n.account_id as subject, 'closed up to ' || n.number as detail, n.available + n.held as off_by
            from ledger_openings n left join balances b using (account_id) left join book_marks m using (account_id)
           where b.entries is null or b.entries < n.number or m.number is null or m.number < n.number`,
  },
  {
    name: 'every open hold has its entry, and no end',
    sql: `select h.account_id || ' ' || h.ref as subject, 'open hold and ledger differ' as detail,
                 abs(h.amount - coalesce(o.held, 0)) as off_by
            from open_holds h
            left join lateral (select * from ledger_entries o
              where o.ref = h.ref and o.account_id is not distinct from h.account_id and o.event = 'hold' offset 0) o on true
            left join lateral (select number from ledger_entries c
              where c.ref = h.ref and c.account_id is not distinct from h.account_id and c.event = 'close' offset 0) c on true
           where o.held is distinct from h.amount or o.key_id <> h.key_id or o.model <> h.model or o.kind <> h.kind
              or c.number is not null`,
  },
];

const standing_queries: readonly RuleQuery[] = [sums, ...standing_rules.map(queryOf)];

/** The names of this module's rules, as findings have them. */
export const money_rule_names: readonly string[] = [entries, ...standing_queries, ...full_rules.map(queryOf)].flatMap(
  (query) => query.names,
);
