import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Answer } from '../http/endpoint.ts';
import { wholeNumber } from '../http/query.ts';
import { invoice_columns, invoiceRows } from '../billing/invoice-csv.ts';
import { invoicePdf } from '../billing/invoice-pdf.ts';
import { isInvoiceNumber, type Invoice } from '../billing/invoice.ts';
import { findInvoice, listInvoices } from '../billing/invoices.ts';
import { ApiError } from '../errors.ts';
import { costView } from '../money/money.ts';
import { csvAnswer } from './csv.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { InvoicesView } from './views/invoices.ts';

const filters = {
  limit: { description: 'Number of invoices.', schema: { type: 'integer' } },
  before: { description: 'Invoices after the one with this number.', schema: { type: 'string' } },
};

/** The account's invoices, newest first. */
export const list_invoices = account_endpoint('GET', '/invoices', 'read', handleList, { query: filters });

async function handleList(
  { db, catalog }: { db: Db; catalog: CatalogHolder },
  { account, query }: AccountCall,
): Promise<Answer> {
  const before = query.get('before');
  if (before !== undefined && !isInvoiceNumber(before)) {
    throw new ApiError('invalid_request', 'before must be the number of an invoice.', { param: 'before' });
  }
  const limit = wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 24;
  const { lines, has_more } = await listInvoices(db, { account_id: account.id, limit, before });
  const view: InvoicesView = {
    data: lines.map(({ number, supplement_to, month, issued_at, total, currency }) => ({
      number,
      supplement_to,
      month,
      issued_at: issued_at.toISOString(),
      total: costView(total, currency),
    })),
    has_more,
    issues: catalog.current.settings.issuer !== undefined,
  };
  return { status: 200, body: view };
}

export const get_invoice_pdf = account_endpoint('GET', '/invoices/{number}/pdf', 'read', async (app, call) => {
  const invoice = await findOne(app.db, call);
  return file(`${invoice.number}.pdf`, 'application/pdf', await invoicePdf(invoice));
});

export const get_invoice_csv = account_endpoint('GET', '/invoices/{number}/csv', 'read', async (app, call) => {
  const invoice = await findOne(app.db, call);
  return csvAnswer(invoice.number, invoice_columns, invoiceRows(invoice));
});

export const get_invoice_json = account_endpoint('GET', '/invoices/{number}/json', 'read', async (app, call) => {
  const invoice = await findOne(app.db, call);
  return file(`${invoice.number}.json`, 'application/json; charset=utf-8', `${JSON.stringify(invoice, null, 2)}\n`);
});

async function findOne(db: Db, { account, params }: AccountCall): Promise<Invoice> {
  const { number = '' } = params;
  const invoice = isInvoiceNumber(number) ? await findInvoice(db, account.id, number) : undefined;
  if (invoice) return invoice;
  throw new ApiError('not_found', 'There is no such invoice.');
}

function file(name: string, type: string, body: Buffer | string): Answer {
  return {
    status: 200,
    body,
    headers: {
      'content-type': type,
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
    },
  };
}
