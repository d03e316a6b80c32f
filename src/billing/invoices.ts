import type { Db, Queryable } from '../db/database.ts';
import { findAccount, type Account } from '../accounts/accounts.ts';
import { earlierClock } from '../db/clock.ts';
import { accountsMoved, chargedByAccount, statementOf, type Period } from '../money/statement.ts';
import type { Money } from '../money/money.ts';
import { monthBefore, periodOf, writeInvoice, type Customer, type Invoice, type Issuer } from './invoice.ts';

/**
 * Hardly anything of a month is booked so long after its end: clocks of nodes are minutes apart at most. What is goes
 * on a supplementary invoice.
 */
const settled_after_ms = 3_600_000;

/** Number of past months to invoice, so that a new issuer does not bill old years. */
const months_back = 3;

/** The time for invoices: a month is over when it is over by the clocks of this node and of the database. */
export function invoiceTime(db: Queryable, node_time: Date): Promise<Date> {
  return earlierClock(db, node_time);
}

/** Can the invoices of a month be made? */
export function isOver(month: string, now: Date): boolean {
  return now.getTime() >= periodOf(month).to.getTime() + settled_after_ms;
}

export type MonthRun = {
  created: Invoice[];
  /** Accounts whose invoices were there before, and lack nothing. */
  existing: number;
  /** Accounts whose invoice could not be made. */
  failed: { account_id: string; error: unknown }[];
};

type Run = {
  issuer: Issuer;
  month: string;
  now: Date;
  /** Called in the transaction that makes an invoice. */
  onInvoice?: OnInvoice | undefined;
};

export type OnInvoice = (tx: Queryable, invoice: Invoice, total: Money, now: Date) => Promise<void>;

type Bounds = { account_id?: string | undefined; signal?: AbortSignal | undefined };

/**
 * Makes the invoices of a month that are missing, of all accounts or one; and supplementary ones for what was charged
 * in it after they were made. A failure of one keeps no other back.
 */
export async function makeInvoices(db: Db, run: Run & Bounds): Promise<MonthRun> {
  const moved = await accountsMoved(db, periodOf(run.month));
  const account_ids = moved.filter((id) => run.account_id === undefined || id === run.account_id);
  const result = await makeThose(db, account_ids, run);
  if (run.account_id === undefined && !run.signal?.aborted && result.failed.length === 0) await markDone(db, run);
  return result;
}

/** Makes what is missing of a month for which all invoices were made: little, and found without reading its charges. */
async function makeMissed(db: Db, run: Run & Bounds): Promise<MonthRun> {
  const charged = await chargedByAccount(db, periodOf(run.month));
  const rows = await db.query<{ account_id: string; total: Money }>(
    'select account_id, sum(total)::bigint as total from invoices where month = $1 group by account_id',
    [`${run.month}-01`],
  );
  const invoiced = new Map(rows.map(({ account_id, total }) => [account_id, total]));
  const due = charged.filter((one) => one.charged > (invoiced.get(one.account_id) ?? 0n));
  return makeThose(
    db,
    due.map(({ account_id }) => account_id),
    run,
  );
}

async function makeThose(db: Db, account_ids: readonly string[], run: Run & Bounds): Promise<MonthRun> {
  const result: MonthRun = { created: [], existing: 0, failed: [] };
  for (const account_id of account_ids) {
    if (run.signal?.aborted) return result;
    try {
      const invoice = await makeInvoice(db, account_id, run);
      if (invoice) result.created.push(invoice);
      else result.existing++;
    } catch (error) {
      result.failed.push({ account_id, error });
    }
  }
  return result;
}

async function markDone(db: Queryable, { month, now }: Run): Promise<void> {
  const values = [`${month}-01`, now];
  await db.query('insert into invoice_months (month, done_at) values ($1, $2) on conflict do nothing', values);
}

/** Returns undefined if the month has its invoice, and nothing was charged in it since. */
async function makeInvoice(db: Db, account_id: string, run: Run): Promise<Invoice | undefined> {
  if (await isCovered(db, account_id, run)) return undefined; // takes no lock, as most do in a second run
  return db.tx(async (tx) => {
    const account = await findAccount(tx, account_id);
    if (!account) throw new Error(`there is no account ${account_id}`);
    const { year, serial } = await nextSerial(tx, run);
    if (await isCovered(tx, account_id, run)) return undefined; // made while we waited for the series
    const before = await invoicesOfMonth(tx, account_id, run.month);
    const period = periodAfter(account_id, run.month, before);
    const statement = await statementOf(tx, period);
    const invoice = writeInvoice({
      number: `${run.issuer.series}-${year}-${String(serial).padStart(4, '0')}`,
      supplement_to: before[0]?.number,
      issued_at: run.now,
      month: run.month,
      currency: account.currency,
      issuer: run.issuer,
      customer: await customerOf(tx, account),
      statement,
    });
    const place = { series: run.issuer.series, year, serial, sequence: before.length + 1, through: statement.through };
    await insertInvoice(tx, invoice, { ...place, total: statement.charged, now: run.now });
    await run.onInvoice?.(tx, invoice, statement.charged, run.now);
    return invoice;
  });
}

/** An invoice of a month, and the last ledger entry that it can have covered. */
type PreviousInvoice = { number: string; through: bigint; total: Money };

async function invoicesOfMonth(db: Queryable, account_id: string, month: string): Promise<PreviousInvoice[]> {
  return db.query<PreviousInvoice>(
    'select number, through, total from invoices where account_id = $1 and month = $2 order by sequence',
    [account_id, `${month}-01`],
  );
}

/** Returns the part of a month that the invoices so far do not cover. */
function periodAfter(account_id: string, month: string, created: readonly PreviousInvoice[]): Period {
  return { account_id, ...periodOf(month), after: created.at(-1)?.through ?? 0n };
}

async function isCovered(db: Queryable, account_id: string, { month }: Run): Promise<boolean> {
  const invoices = await invoicesOfMonth(db, account_id, month);
  if (invoices.length === 0) return false;
  const [charges] = await chargedByAccount(db, { account_id, ...periodOf(month) });
  return invoices.reduce((sum, { total }) => sum + total, 0n) === (charges?.charged ?? 0n);
}

/** The next free number; the series stays locked until the transaction ends, and with it the number is used or free. */
async function nextSerial(tx: Queryable, { issuer, now }: Run): Promise<{ year: number; serial: bigint }> {
  const year = now.getUTCFullYear();
  const values = [issuer.series, year];
  await tx.query('insert into invoice_series (series, year) values ($1, $2) on conflict do nothing', values);
  const rows = await tx.query<{ last: bigint }>(
    'select last from invoice_series where series = $1 and year = $2 for update',
    values,
  );
  return { year, serial: (rows[0]?.last ?? 0n) + 1n };
}

type Place = {
  series: string;
  year: number;
  serial: bigint;
  sequence: number;
  through: bigint;
  total: Money;
  now: Date;
};

async function insertInvoice(tx: Queryable, invoice: Invoice, place: Place): Promise<void> {
  const { series, year, serial, sequence, through, total, now } = place;
  await tx.query(
    `insert into invoices (account_id, month, series, year, serial, number, currency, total, snapshot, issued_at,
       sequence, through)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      invoice.customer.account_id,
      `${invoice.month}-01`,
      series,
      year,
      serial,
      invoice.number,
      invoice.currency,
      total,
      JSON.stringify(invoice),
      now,
      sequence,
      through,
    ],
  );
  await tx.query('update invoice_series set last = $3 where series = $1 and year = $2', [series, year, serial]);
}

/** Returns the account's billing details, or its name. */
async function customerOf(tx: Queryable, { id, name }: Account): Promise<Customer> {
  type Details = Record<'company' | 'address' | 'postal_code' | 'city' | 'country' | 'tax_id' | 'email', string>;
  const rows = await tx.query<Details>(
    `select company, address, postal_code, city, country, tax_id, email from billing_details where account_id = $1`,
    [id],
  );
  const {
    company = '',
    address = '',
    postal_code = '',
    city = '',
    country = '',
    tax_id = '',
    email = '',
  } = rows[0] ?? {};
  const lines = [...address.split('\n'), `${postal_code} ${city}`, country].map((line) => line.trim());
  return { account_id: id, name: company || name, address: lines.filter((line) => line !== ''), tax_id, email };
}

/**
 * Makes whatever is missing of the last months that are over; answers what was made and what failed. A service that
 * was down at the end of a month makes up for it, and what was charged late is supplemented. `now`: see `invoiceTime`.
 */
export async function makeDueInvoices(
  db: Db,
  { issuer, now, signal, onInvoice }: Omit<Run, 'month'> & { signal?: AbortSignal },
): Promise<MonthRun> {
  const all: MonthRun = { created: [], existing: 0, failed: [] };
  const last = Array.from({ length: months_back }, (_, index) => monthBefore(now, months_back - index));
  const done = await db.query<{ month: string }>(
    `select to_char(month, 'YYYY-MM') as month from invoice_months where to_char(month, 'YYYY-MM') = any ($1)`,
    [last],
  );
  for (const month of last) {
    if (!isOver(month, now) || signal?.aborted) continue;
    const make = done.some((one) => one.month === month) ? makeMissed : makeInvoices;
    const { created, existing, failed } = await make(db, { issuer, month, now, signal, onInvoice });
    all.created.push(...created);
    all.existing += existing;
    all.failed.push(...failed);
  }
  return all;
}

/** One line of the list of invoices. */
export type InvoiceLine = {
  number: string;
  /** The number of the month's first invoice, if this one adds to it. */
  supplement_to: string | null;
  month: string;
  currency: string;
  total: Money;
  issued_at: Date;
  /** The last ledger entry that it can have covered. */
  through: bigint;
};

/** Newest month first, and of a month the newest invoice; `before` is the number of the invoice after which to go on. */
export async function listInvoices(
  db: Queryable,
  { account_id, limit, before }: { account_id: string; limit: number; before?: string | undefined },
): Promise<{ lines: InvoiceLine[]; has_more: boolean }> {
  const rows = await db.query<InvoiceLine>(
    `select i.number, nullif(f.number, i.number) as supplement_to, to_char(i.month, 'YYYY-MM') as month, i.currency,
            i.total, i.issued_at, i.through
       from invoices i join invoices f on f.account_id = i.account_id and f.month = i.month and f.sequence = 1
      where i.account_id = $1 and ($2::text is null or (i.month, i.sequence) < (
        select month, sequence from invoices where number = $2 and account_id = $1))
      order by i.month desc, i.sequence desc limit $3`,
    [account_id, before ?? null, limit + 1],
  );
  return { lines: rows.slice(0, limit), has_more: rows.length > limit };
}

/** The invoice with this number, if it is this account's. */
export async function findInvoice(db: Queryable, account_id: string, number: string): Promise<Invoice | undefined> {
  const rows = await db.query<{ snapshot: Invoice }>(
    'select snapshot from invoices where number = $2 and account_id = $1',
    [account_id, number],
  );
  return rows[0]?.snapshot;
}

const mails_max = 100;

/** Invoices of the last days that nobody was told of, by their numbers; `after`: the number after which to go on. */
export async function unmailedInvoices(db: Queryable, since: Date, after = ''): Promise<Invoice[]> {
  const rows = await db.query<{ snapshot: Invoice }>(
    `select snapshot from invoices i where issued_at >= $1 and number > $2
        and not exists (select from invoice_mails m where m.number = i.number) order by number limit ${mails_max}`,
    [since, after],
  );
  return rows.map(({ snapshot }) => snapshot);
}

export async function markMailed(db: Queryable, number: string, now: Date): Promise<void> {
  await db.query('insert into invoice_mails (number, mailed_at) values ($1, $2) on conflict do nothing', [number, now]);
}
