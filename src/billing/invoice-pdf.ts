import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type PDFDocument from 'pdfkit';
import { costView, parseMoney } from '../money/money.ts';
import { unitsText } from './invoice-csv.ts';
import type { Invoice } from './invoice.ts';

/**
 * An invoice on paper: A4, as many pages as it takes. The fonts come along, since those that every reader of PDF has
 * know no ł, ą or ę.
 */

const left = 50;
const right = 545;
const bottom = 770; // of what may be written on a page; the foot is below
const wide = right - left;
const ink = '#1f2328';
const grey = '#57606a';
const rule = '#d0d7de';

/** Renders an invoice as PDF: the same bytes for the same invoice. */
export async function invoicePdf(invoice: Invoice): Promise<Buffer> {
  const { default: PDFDocument } = await import('pdfkit');
  const [regular, bold] = await Promise.all([fontNamed('DejaVuSans.ttf'), fontNamed('DejaVuSans-Bold.ttf')]);
  const doc = new PDFDocument({
    size: 'A4',
    margins: { top: 50, bottom: 20, left, right: 50 },
    bufferPages: true, // the foot names the number of pages
    autoFirstPage: false,
    lang: 'en',
    displayTitle: true,
    font: '', // no default: it would be opened anew for every text
    info: {
      Title: `${invoice.supplement_to === undefined ? 'Invoice' : 'Supplementary invoice'} ${invoice.number}`,
      Author: invoice.issuer.name,
      CreationDate: new Date(`${invoice.issued_on}T00:00:00Z`),
    },
  });
  doc.registerFont('regular', regular).registerFont('bold', bold);
  const bytes = bytesOf(doc);
  doc.addPage();
  writeHead(doc, invoice);
  writeLines(doc, invoice);
  writeSums(doc, invoice);
  writeBalance(doc, invoice);
  writeFeet(doc, invoice);
  doc.end();
  return bytes;
}

const require = createRequire(import.meta.url);

async function fontNamed(file_name: string): Promise<Buffer> {
  return readFile(join(dirname(require.resolve('dejavu-fonts-ttf/package.json')), 'ttf', file_name));
}

function bytesOf(doc: PDFDocument): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    doc.on('data', (chunk) => chunks.push(chunk));
    doc.on('end', () => resolve(Buffer.concat(chunks)));
    doc.on('error', reject);
  });
}

type Style = { bold?: boolean; size?: number; color?: string; align?: 'right'; width?: number };

/** Writes a text, broken into lines where it is wider than `width`, and answers where it ends. */
function write(doc: PDFDocument, text: string, x: number, y: number, style: Style = {}): number {
  const { bold = false, size = 9, color = ink, align = 'left', width = right - x } = style;
  doc
    .font(bold ? 'bold' : 'regular')
    .fontSize(size)
    .fillColor(color);
  doc.text(text, x, y, { width, align, lineGap: 2 });
  return doc.y;
}

function heightOf(doc: PDFDocument, text: string, width: number, size = 9): number {
  return doc.font('regular').fontSize(size).heightOfString(text, { width, lineGap: 2 });
}

function drawRule(doc: PDFDocument, y: number, x = left): void {
  doc.lineWidth(0.7).strokeColor(rule).moveTo(x, y).lineTo(right, y).stroke();
}

function writeHead(doc: PDFDocument, invoice: Invoice): void {
  const { number, supplement_to, issued_on, from, to, issuer, customer } = invoice;
  const half = 260;
  let y = write(doc, issuer.name, left, 50, { bold: true, size: 11, width: half });
  const issuer_lines = [...issuer.address, ...(issuer.tax_id === '' ? [] : [`Tax ID ${issuer.tax_id}`])];
  for (const line of issuer_lines) y = write(doc, line, left, y + 1, { color: grey, width: half });
  if (supplement_to === undefined) write(doc, 'Invoice', 330, 48, { bold: true, size: 22, align: 'right' });
  else write(doc, 'Supplementary invoice', 290, 54, { bold: true, size: 16, align: 'right' });
  const numbered = write(doc, number, 330, 78, { size: 11, color: grey, align: 'right' });
  y = Math.max(y, numbered) + 26;
  let billed = write(doc, 'Billed to', left, y, { color: grey, width: half });
  billed = write(doc, customer.name, left, billed + 2, { bold: true, size: 10, width: half });
  const lines = [...customer.address, ...(customer.tax_id === '' ? [] : [`Tax ID ${customer.tax_id}`])];
  for (const line of lines) billed = write(doc, line, left, billed + 1, { width: half });
  const facts = [
    ['Issued', issued_on],
    ['Period', `${from} – ${to} (UTC)`],
    ['Account', customer.account_id],
    ...(supplement_to === undefined ? [] : ([['Supplement to', supplement_to]] as const)),
  ] as const;
  let fact_y = y;
  for (const [name, value] of facts) {
    write(doc, name, 330, fact_y, { color: grey, width: 50 });
    fact_y = write(doc, value, 380, fact_y, { align: 'right', size: 8.5 }) + 3;
  }
  doc.y = Math.max(billed, fact_y) + 24;
}

/** Starts a new page where less than `height` is left on this one. Answers whether it did. */
function breakPage(doc: PDFDocument, height: number): boolean {
  if (doc.y + height <= bottom) return false;
  doc.addPage();
  doc.y = 50;
  return true;
}

const columns = { model: left + 6, kind: 320, charges: 375, amount: 440 } as const;
const edge = right - 6; // of what stands in a table
const model_width = columns.kind - columns.model - 12;

function writeLines(doc: PDFDocument, invoice: Invoice): void {
  writeLinesHead(doc, invoice.currency);
  for (const { model, kind, charges, units, amount } of invoice.lines) {
    const used = unitsText(units);
    const height = heightOf(doc, model, model_width) + (used === '' ? 0 : heightOf(doc, used, model_width, 7.5) + 1);
    if (breakPage(doc, height + 14)) writeLinesHead(doc, invoice.currency);
    const y = doc.y + 6;
    write(doc, kind, columns.kind, y, { width: 55 });
    write(doc, String(charges), columns.charges, y, { width: 55, align: 'right' });
    write(doc, amount, columns.amount, y, { align: 'right', width: edge - columns.amount });
    const below = write(doc, model, columns.model, y, { width: model_width });
    if (used !== '') write(doc, used, columns.model, below + 1, { width: model_width, size: 7.5, color: grey });
    doc.y = y + height + 5;
    drawRule(doc, doc.y);
  }
  if (invoice.lines.length === 0) {
    doc.y = write(doc, 'No charges in this period.', left, doc.y + 8, { color: grey }) + 8;
  }
}

function writeLinesHead(doc: PDFDocument, currency: string): void {
  const y = doc.y;
  doc.rect(left, y, wide, 22).fill('#f3f5f7');
  const style = { bold: true, size: 8 };
  write(doc, 'Model', columns.model, y + 6, { ...style, width: 200 });
  write(doc, 'Kind', columns.kind, y + 6, { ...style, width: 55 });
  write(doc, 'Charges', columns.charges, y + 6, { ...style, width: 55, align: 'right' });
  write(doc, `Amount (${currency})`, columns.amount, y + 6, { ...style, width: edge - columns.amount, align: 'right' });
  doc.y = y + 22;
}

function writeSums(doc: PDFDocument, { net, tax, tax_percent, total, currency }: Invoice): void {
  breakPage(doc, 110);
  let y = doc.y + 14;
  const row = (name: string, value: string, style: Style = {}) => {
    write(doc, name, 320, y, { ...style, width: 90 });
    y = write(doc, `${value} ${currency}`, 400, y, { ...style, align: 'right', width: edge - 400 }) + 4;
  };
  if (tax_percent !== null) {
    row('Net', net);
    row(`Tax ${tax_percent} %`, tax);
  }
  drawRule(doc, y, 320);
  y += 7;
  row('Total', total, { bold: true, size: 12 });
  row('To the cent', costView(parseMoney(total) ?? 0n, currency).amount, { color: grey });
  y = write(doc, 'Paid from the balance of the account: nothing is due.', left, y + 10, { color: grey });
  doc.y = y;
}

function writeBalance(doc: PDFDocument, { balance, from, to, total, currency }: Invoice): void {
  breakPage(doc, 120);
  doc.y = write(doc, 'Balance of the account', left, doc.y + 22, { bold: true, size: 10 }) + 4;
  const row = (day: string, what: string, amount: string, bold = false) => {
    const height = heightOf(doc, what, 270);
    breakPage(doc, height + 12);
    const y = doc.y + 5;
    write(doc, day, columns.model, y, { width: 75, color: grey });
    write(doc, amount, columns.amount - 40, y, { align: 'right', width: edge - columns.amount + 40, bold });
    write(doc, what, 130, y, { width: 270, bold });
    doc.y = y + height + 4;
    drawRule(doc, doc.y);
  };
  row(from, 'Opening balance', `${balance.opening} ${currency}`);
  for (const { type, at, amount, reason } of balance.movements) {
    const sign = amount.startsWith('-') ? '' : '+';
    row(at.slice(0, 10), `${type === 'topup' ? 'Top-up' : 'Correction'}: ${reason}`, `${sign}${amount} ${currency}`);
  }
  row('', 'Charges of this invoice', `-${total} ${currency}`);
  row(to, 'Closing balance', `${balance.closing} ${currency}`, true);
}

function writeFeet(doc: PDFDocument, { number, issuer }: Invoice): void {
  const { start, count } = doc.bufferedPageRange();
  for (let page = 0; page < count; page++) {
    doc.switchToPage(start + page);
    drawRule(doc, 786);
    write(doc, `${issuer.name} · ${number}`, left, 794, { size: 7.5, color: grey, width: 380 });
    write(doc, `Page ${page + 1} of ${count}`, 440, 794, { size: 7.5, color: grey, align: 'right' });
  }
}
