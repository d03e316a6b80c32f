import { assert } from '../lib/assert.ts';
import type { Queryable } from '../db/database.ts';
import type { Money } from '../money/money.ts';

/** The columns of chat_calls in the order in which `rowOf` writes them. */
const row_columns = `account_id, id, key_id, model, style, stream, status, error_type, finish, attempts, input_tokens,
  cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency,
  first_content_ms, total_ms, created_at, upstream_cost, cache_write_1h_tokens`
  .split(',')
  .map((name) => name.trim());

/** A record by the names of its columns, so that a newer version with more of them can still write it. */
export type JournaledRecord = Record<string, unknown>;

/** The other way round of `rowOf` (record.ts). */
export function recordOf(row: string): JournaledRecord {
  const text = unquoted(row).slice(1, -1);
  const values: (string | null)[] = [];
  for (const [, quoted, plain = ''] of text.matchAll(/(?:"((?:[^"\\]|\\.)*)"|([^",]*))(?:,|$)/gs)) {
    if (values.length === row_columns.length) break; // matchAll finds the empty rest as well
    values.push(quoted === undefined ? plain || null : unescaped(quoted));
  }
  assert(values.length === row_columns.length, 'a row has a value for each column');
  const record: JournaledRecord = Object.fromEntries(row_columns.map((name, i) => [name, values[i]]));
  return { ...record, attempts: JSON.parse(String(record['attempts'])) };
}

function unquoted(text: string): string {
  return unescaped(text.slice(1, -1));
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/gs, '$1');
}

/** Writes a record, unless it is there; with what the ledger says of its money. */
export async function insertRecord(
  db: Queryable,
  record: JournaledRecord,
  money?: { cost: Money; upstream_cost: Money | null },
): Promise<void> {
  const cost = money && { cost: String(money.cost), upstream_cost: money.upstream_cost?.toString() ?? null };
  await db.query(
    'insert into chat_calls select r.* from jsonb_populate_record(null::chat_calls, $1) as r on conflict do nothing',
    [JSON.stringify({ ...record, ...cost })],
  );
}
