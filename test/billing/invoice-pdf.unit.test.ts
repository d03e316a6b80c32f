import { expect, it } from 'vitest';
import { invoicePdf } from '../../src/billing/invoice-pdf.ts';
import type { Invoice } from '../../src/billing/invoice.ts';
import { pagesOfPdf } from '../helpers/pdf.ts';

const pangram = 'Zażółć gęślą jaźń – ZAŻÓŁĆ GĘŚLĄ JAŹŃ €';

const lines = (count: number): Invoice['lines'] =>
  Array.from({ length: count }, (_, index) => ({
    model: `test/model-${index}`,
    kind: 'image',
    charges: index + 1,
    units: { image: String(index + 1) },
    amount: `${index}.000001`,
  }));

const invoice = (change: Partial<Invoice> = {}): Invoice => ({
  version: 1,
  number: 'MED-2026-0001',
  issued_on: '2026-12-01',
  month: '2026-11',
  from: '2026-11-01',
  to: '2026-11-30',
  currency: 'PLN',
  issuer: { name: 'Łódź Śmigłów', address: ['ul. Ćwiartki 3/4'], tax_id: 'PL1' },
  customer: { account_id: 'acct_1', name: pangram, address: ['ul. Źródlana 2'], tax_id: 'PL2', email: '' },
  lines: lines(3),
  tax_percent: '23',
  net: '2.439027',
  tax: '0.560976',
  total: '3.000003',
  balance: {
    opening: '10.000000',
    movements: [
      { type: 'topup', at: '2026-11-05T00:00:00.000Z', amount: '5.000000', reason: 'wpłata', ref: 'a' },
      { type: 'adjustment', at: '2026-11-06T00:00:00.000Z', amount: '-1.000000', reason: 'korekta', ref: 'b' },
    ],
    closing: '10.999997',
  },
  ...change,
});

it('a supplementary invoice says so and names the invoice that it adds to', async () => {
  const [page = ''] = await pagesOfPdf(await invoicePdf(invoice({ supplement_to: 'MED-2026-0000' })));
  expect(page).toContain('Supplementary invoice');
  expect(page).toContain('MED-2026-0000');
  const [plain = ''] = await pagesOfPdf(await invoicePdf(invoice()));
  expect(plain).not.toContain('Supplementary');
});

it('every Polish letter, the euro and every amount can be read from the PDF', async () => {
  const pages = await pagesOfPdf(await invoicePdf(invoice()));
  expect(pages).toHaveLength(1);
  const [page = ''] = pages;
  for (const text of [
    pangram,
    'Łódź Śmigłów',
    'ul. Ćwiartki 3/4',
    'ul. Źródlana 2',
    'MED-2026-0001',
    'test/model-2',
    'image 3',
    '2.000001',
    'Tax 23 %',
    '2.439027 PLN',
    '0.560976 PLN',
    '3.000003 PLN',
    '3.00 PLN',
    'Top-up: wpłata',
    '+5.000000 PLN',
    'Correction: korekta',
    '-1.000000 PLN',
    '10.999997 PLN',
    'Page 1 of 1',
  ]) {
    expect(page).toContain(text);
  }
});

it('a long invoice has as many pages as it needs, each with its number, the table head and no line twice', async () => {
  const pages = await pagesOfPdf(await invoicePdf(invoice({ lines: lines(100) })));
  expect(pages.length).toBeGreaterThan(3);
  for (const [index, page] of pages.entries()) expect(page).toContain(`Page ${index + 1} of ${pages.length}`);
  for (const page of pages.slice(0, -1)) expect(page).toContain('Amount (PLN)');
  const models = pages.join('\n').match(/test\/model-\d+/g) ?? [];
  expect(models).toEqual(lines(100).map(({ model }) => model));
});

it('names of any length stay on the page, and an invoice without tax and charges is valid', async () => {
  const long = 'Przedsiębiorstwo '.repeat(11).trim();
  const bytes = await invoicePdf(
    invoice({
      customer: { account_id: 'acct_1', name: long, address: ['x'.repeat(200)], tax_id: '', email: '' },
      lines: [{ model: `a/${'m'.repeat(126)}`, kind: 'chat', charges: 1, units: {}, amount: '0.000000' }],
      tax_percent: null,
      balance: { opening: '0.000000', movements: [], closing: '0.000000' },
    }),
  );
  const [page = ''] = await pagesOfPdf(bytes);
  expect(page.match(/Przedsiębiorstwo/g)).toHaveLength(11);
  expect(page.replaceAll('\n', '')).toContain('m'.repeat(126));
  expect(page).not.toContain('Tax 23');
  const [empty = ''] = await pagesOfPdf(await invoicePdf(invoice({ lines: [] })));
  expect(empty).toContain('No charges in this period.');
});

it('the same invoice is the same file', async () => {
  expect(await invoicePdf(invoice())).toEqual(await invoicePdf(invoice()));
});
