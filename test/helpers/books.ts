import { expect } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import type { Rule } from '../../src/money/rule.ts';

/**
 * Reads all money of the database again and expects no difference. Call it after every test that has
 * a database; `more` are the rules of later modules, such as service_rules.
 */
export async function expectExactBooks(db: Db, more: readonly Rule[] = []): Promise<void> {
  const report = await checkBooks(db, { full: true, more });
  expect({ findings: report.findings, difference: report.difference }).toEqual({
    findings: [],
    difference: '0.000000',
  });
}
