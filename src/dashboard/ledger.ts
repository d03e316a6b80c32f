import type { Db } from '../db/database.ts';
import { entry_types, readEntryCursor, renderEntry } from '../api/money.ts';
import { bookingsOf, type Booking } from '../accounts/audit.ts';
import type { Account } from '../accounts/accounts.ts';
import { keyNames } from '../accounts/key-list.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { moment, oneOf, wholeNumber } from '../http/query.ts';
import { listInvoices, type InvoiceLine } from '../billing/invoices.ts';
import { isId } from '../lib/ids.ts';
import { listEntries, type Entry, type EntryFilter } from '../money/ledger.ts';
import { balanceView, exact } from '../money/money.ts';
import { csvAnswer, type Cell } from './csv.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { keyName } from './tasks.ts';
import { fileName } from './usage.ts';
import type { Page } from './views/activity.ts';
import type { LedgerLine } from './views/billing.ts';

const text = { type: 'string' };
const filters = {
  type: { description: 'Only this type.', schema: text },
  from: { description: 'Booked at this time or later.', schema: text },
  to: { description: 'Booked before this time.', schema: text },
};
const paging = {
  limit: { description: 'Number of movements.', schema: { type: 'integer' } },
  after: { description: 'Older than this one.', schema: text },
};

/** The account's movements of money, newest first. */
export const list_ledger = account_endpoint('GET', '/ledger', 'read', handleList, { query: { ...filters, ...paging } });

/** The same, all of them, as a file. */
export const get_ledger_file = account_endpoint('GET', '/ledger.csv', 'read', handleFile, { query: filters });

function readFilter(query: Query): Pick<EntryFilter, 'type' | 'from' | 'to'> {
  const type = oneOf(query, 'type', ['topup', 'hold', 'release', 'charge', 'adjustment']);
  const [from, to] = [moment(query, 'from'), moment(query, 'to')];
  return { ...(type && { type: entry_types[type] }), ...(from && { from }), ...(to && { to }) };
}

async function handleList({ db }: { db: Db }, { account, query }: AccountCall): Promise<Answer> {
  const after = readEntryCursor(query, 'after');
  const limit = wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 50;
  const filter = { account_id: account.id, limit, ...readFilter(query), ...(after !== undefined && { after }) };
  const [{ entries, has_more }, { lines: invoices }] = await Promise.all([
    listEntries(db, filter),
    listInvoices(db, { account_id: account.id, limit: invoices_max, before: undefined }),
  ]);
  const manual_refs = entries.filter(({ type }) => type === 'topup' || type === 'adjustment').map(({ ref }) => ref);
  const [bookings, names] = await Promise.all([bookingsOf(db, account.id, manual_refs), namesOf(db, account, entries)]);
  const page: Page<LedgerLine> = {
    data: entries.map((entry) => renderLine(entry, account, { names, bookings, invoices })),
    has_more,
  };
  return { status: 200, body: page };
}

/** Ten years of months. */
const invoices_max = 120;

type Causes = {
  names: ReadonlyMap<string, string>;
  bookings: ReadonlyMap<string, Booking>;
  /** Newest first. */
  invoices: readonly InvoiceLine[];
};

function renderLine(entry: Entry, { currency }: Account, { names, bookings, invoices }: Causes): LedgerLine {
  const { key_id, ...entry_view } = renderEntry(entry, currency);
  return {
    ...entry_view,
    balance_after: balanceView(entry.available_after + entry.held_after, currency),
    cause: isId('task', entry.ref) ? 'task' : isId('req', entry.ref) ? 'chat' : null,
    key: key_id === null ? null : keyName(key_id, names),
    booked_by: bookings.get(entry.ref) ?? null,
    invoice: entry.type === 'settle' ? invoiceOf(entry, invoices) : null,
  };
}

/** Returns the names of the keys of these entries. */
function namesOf(db: Db, { id }: Account, entries: readonly Entry[]): Promise<Map<string, string>> {
  return keyNames(
    db,
    id,
    entries.map(({ key_id }) => key_id),
  );
}

/** The first of its month that can have covered the entry. */
function invoiceOf({ created_at, number }: Entry, invoices: readonly InvoiceLine[]): string | null {
  const month = created_at.toISOString().slice(0, 'YYYY-MM'.length);
  return invoices.findLast((each) => each.month === month && each.through >= number)?.number ?? null;
}

async function handleFile({ db }: { db: Db }, { account, query }: AccountCall): Promise<Answer> {
  const filter = readFilter(query);
  const header =
    'number,time,type,amount,currency,balance_after,available_after,held_after,reference,key,key_name,model,reason';
  return csvAnswer(fileName('ledger', filter), header.split(','), fileLines(db, account, filter));
}

const page = 1_000;

/** Newest first, as on the page; a charge is below zero, and what is held or released is no movement of the balance. */
async function* fileLines(
  db: Db,
  account: Account,
  filter: Pick<EntryFilter, 'type' | 'from' | 'to'>,
): AsyncGenerator<Cell[]> {
  const { id: account_id, currency } = account;
  let after: bigint | undefined;
  while (true) {
    const more = { account_id, limit: page, ...filter, ...(after !== undefined && { after }) };
    const { entries, has_more } = await listEntries(db, more);
    const names = await namesOf(db, account, entries);
    for (const entry of entries) {
      const { id, type, amount, direction, reference_id, key_id, model, reason } = renderEntry(entry, currency);
      const signed = direction === 'out' ? `-${amount.exact}` : amount.exact;
      const { available_after, held_after } = entry;
      const sums = [exact(available_after + held_after), exact(available_after), exact(held_after)];
      const key = [key_id, key_id === null ? null : names.get(key_id)];
      yield [id, entry.created_at, type, signed, currency, ...sums, reference_id, ...key, model, reason];
    }
    after = entries.at(-1)?.number;
    if (!has_more || after === undefined) return;
  }
}
