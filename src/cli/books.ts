import type { Command } from 'commander';
import { checkBooks } from '../money/books.ts';
import { service_rules } from '../chat/books.ts';
import { says, withEngine } from './command.ts';

export function booksCommand(program: Command): void {
  const books = program
    .command('books')
    .description('recompute all money from the ledger; exit 1 on a difference of a millionth');
  books.option('--full', 'read every entry again, not only those since the last run');
  says(books, () =>
    withEngine(async (app) => {
      const report = await checkBooks(app.db, { full: books.opts()['full'] === true, more: service_rules });
      const lines = report.findings.map((finding) => `${finding.rule}: ${finding.subject}: ${finding.detail}`);
      const sums = `${report.accounts} accounts, ${report.entries} entries, ${report.open_holds} open holds, difference ${report.difference}`;
      const text = [...lines, `${report.ok ? 'The books are exact' : 'THE BOOKS DO NOT ADD UP'}: ${sums}`].join('\n');
      return { json: report, text, exit_code: report.ok ? 0 : 1 };
    }),
  );
}
