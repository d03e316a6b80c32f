import type { Migration } from './sql-files.ts';

/**
 * A migration's work by its longest step. `quick`: the catalogue of the database alone. `reads`: whole tables are read
 * while nobody writes to them. `rewrites`: rows are written again, so it takes longer and needs room.
 */
type Work = 'quick' | 'reads' | 'rewrites';

export type Effect = { name: string; work: Work; tables: string[] };

/**
 * Returns the work of migrations that are applied one after the other, from their text. Tables that they make
 * themselves are empty, whatever is done to them. What the text does not tell, such as the body of a DO, counts as
 * `reads`.
 */
export function effectsOf(migrations: readonly Pick<Migration, 'name' | 'sql'>[]): Effect[] {
  const is_new = new Set<string>();
  return migrations.map(({ name, sql }) => {
    const steps = statementsOf(sql).map((statement) => stepOf(statement, is_new));
    const of = (work: Work) => steps.filter((step) => step?.work === work);
    const work = (['rewrites', 'reads'] as const).find((each) => of(each).length > 0) ?? 'quick';
    const tables = work === 'quick' ? [] : [...of('rewrites'), ...of('reads')].flatMap((step) => step?.table ?? []);
    return { name, work, tables: [...new Set(tables)] };
  });
}

/** The statements of a file without comments and texts, in small letters. */
function statementsOf(sql: string): string[] {
  const bare = sql
    .replaceAll(/\$(\w*)\$[^]*?\$\1\$/g, "''")
    .replaceAll(/'(?:[^']|'')*'/g, "''")
    .replaceAll(/--.*$/gm, '')
    .toLowerCase();
  return bare
    .split(';')
    .map((statement) => statement.replaceAll(/\s+/g, ' ').trim())
    .filter((statement) => statement !== '');
}

type Step = { work: 'reads' | 'rewrites'; table?: string };

const table_name = '((?:[a-z_][a-z0-9_]*\\.)?[a-z_][a-z0-9_]*)';
const pattern = (text: string) => new RegExp(text.replace('TABLE', table_name));

const creates = pattern('^create (?:unlogged )?table (?:if not exists )?TABLE');
const renames = pattern('^alter table (?:if exists )?TABLE rename to ([a-z_][a-z0-9_]*)$');
const alters = pattern('^alter table (?:if exists )?(?:only )?TABLE (.*)$');
const reading = [pattern('^create (?:unique )?index .*?\\bon (?:only )?TABLE'), pattern('^insert into .*? from TABLE')];
const rewriting = [pattern('^update (?:only )?TABLE'), pattern('^delete from (?:only )?TABLE')];
const unknown = /^(do|call|select|with|truncate|cluster|refresh) /;

/** Returns undefined for a quick one. `is_new` learns the tables that it makes. */
function stepOf(statement: string, is_new: Set<string>): Step | undefined {
  const created = creates.exec(statement)?.[1];
  if (created !== undefined) {
    is_new.add(created);
    return undefined;
  }
  const [, from, to] = renames.exec(statement) ?? [];
  if (from !== undefined && to !== undefined && is_new.has(from)) is_new.add(to);
  const step = oldStepOf(statement);
  return step?.table !== undefined && is_new.has(step.table) ? undefined : step;
}

function oldStepOf(statement: string): Step | undefined {
  for (const [work, patterns] of [['rewrites', rewriting] as const, ['reads', reading] as const]) {
    const table = patterns.map((each) => each.exec(statement)?.[1]).find((name) => name !== undefined);
    if (table !== undefined) return { work, table };
  }
  const [, table, change] = alters.exec(statement) ?? [];
  if (table !== undefined && change !== undefined) {
    const work = workOf(change);
    return work && { work, table };
  }
  return unknown.test(statement) ? { work: 'reads' } : undefined;
}

/** A default that is not the same for all rows is computed and written for each; these are computed once. */
const steady_default = /\bdefault (?:now\(\)|current_timestamp|current_date)/g;

/** It looks at new rows only. */
const unchecked_rule = /\badd (constraint [a-z0-9_]+ )?(check|foreign key)\b.*?\bnot valid\b/g;

const written_again = /\b(set data )?type\b|\bset (un)?logged\b|\bset access method\b|\bgenerated always as\b/;
const computed_default = /\badd (column )?.*\bdefault [a-z_.]+\(/;
const rule =
  /\badd\b.*\b(check|foreign key|references|unique|primary key|exclude)\b|\bset not null\b|\bvalidate constraint\b/;

/** PostgreSQL 18's documentation of ALTER TABLE (Notes), read 2026-11-27, says which changes write or read all rows. */
function workOf(change: string): Step['work'] | undefined {
  const bare = change.replaceAll(steady_default, '').replaceAll(unchecked_rule, '');
  if (written_again.test(bare) || computed_default.test(bare)) return 'rewrites';
  return rule.test(bare) ? 'reads' : undefined;
}
