import type { Command } from 'commander';
import { silent } from '../app/data.ts';
import { service_rules } from '../chat/books.ts';
import { makeEngineTables } from '../queue/backup.ts';
import { isEngineCreated } from '../queue/pgboss-tables.ts';
import { reconcile } from '../money/reconciliation.ts';
import { counted } from '../lib/counted.ts';
import { says, withApp } from './command.ts';

export function booksCommand(books: Command): void {
  books.option('--full', 'read every entry again, not only those since the last run');
  says(books, () =>
    withApp(async (app) => {
      if (!(await isEngineCreated(app.db))) await makeEngineTables(app.db, silent); // the rules look for jobs
      const report = await reconcile(app.db, {
        clock: app.clock,
        full: books.opts()['full'] === true,
        more: service_rules,
      });
      const lines = report.findings.map((finding) => `${finding.rule}: ${finding.subject}: ${finding.detail}`);
      const sums = [
        counted(report.accounts, 'account'),
        counted(report.entries, 'entry', 'entries'),
        counted(report.open_holds, 'open hold'),
        `difference ${report.difference}`,
      ].join(', ');
      const text = [...lines, `${report.ok ? 'Reconciled' : 'NOT RECONCILED'}: ${sums}`].join('\n');
      return { json: report, text, exit_code: report.ok ? 0 : 1 };
    }),
  );
}
