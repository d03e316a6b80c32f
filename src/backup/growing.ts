import type pg from 'pg';
import { growing_records } from '../chat/record-row.ts';
import { growing_contents } from '../contents/stored.ts';
import { growing_responses } from '../conversations/stored-responses.ts';
import { sqlName, type GrowingTable, type Table } from '../db/tables.ts';
import { growing_entries, moments } from '../money/ledger.ts';
import { growing_idempotency_keys } from '../tasks/create.ts';
import { growing_tasks } from '../tasks/files.ts';
import { growing_deliveries, growing_events } from '../webhooks/delivery.ts';

/**
 * Nearly all of a large database, in the order in which it is read: entries go only after the tasks that they tell of,
 * and a task has its delivery for as long as it is there.
 */
export const growing_tables: readonly GrowingTable[] = [
  growing_entries,
  growing_events,
  growing_deliveries,
  growing_tasks,
  growing_idempotency_keys,
  growing_records,
  growing_contents,
  growing_responses,
];

/** Tells whether a table is one of them, or has rows that belong to theirs. */
export function isGrowing({ name }: Pick<Table, 'name'>): boolean {
  return growing_tables.some((growing) => growing.name === name || growing.parts?.name === name);
}

/** Tells whether a database has all of them: one that waits for its migrations may not. */
export function areGrowing(tables: readonly Table[]): boolean {
  const names = growing_tables.flatMap(({ name, parts }) => (parts ? [name, parts.name] : [name]));
  return [...names, 'public.ledger_openings'].every((name) => tables.some((table) => table.name === name));
}

/** Makes the temporary tables of the connection that keep the moment of a backup. */
export async function prepareMoment(client: pg.Client): Promise<void> {
  await client.query(`set enable_seqscan = off; -- parts are found by their keys, whatever the planner believes
    create temp table moments (account_id text primary key, entries bigint not null, at timestamptz not null default now())`);
  for (const { name } of growing_tables.filter(({ changes }) => changes !== undefined))
    await client.query(`create temp table ${readOf(name)} (account_id text, key text, primary key (account_id, key))`);
}

/** Notes the moment, within the snapshot that shows it: how far the ledger is, and which rows are read now. */
export async function noteMoment(client: pg.Client): Promise<void> {
  await client.query(`insert into pg_temp.moments (account_id, entries) ${moments}`);
  for (const { name, key, changes } of growing_tables) {
    if (changes === undefined) continue;
    const rows = changingRows({ name, changes });
    await client.query(`insert into ${readOf(name)} select account_id, ${key} from ${rows} r`);
  }
}

/** The row set of what is read at the moment itself; undefined if nothing of the table changes. */
export function changingRows({ name, changes }: Pick<GrowingTable, 'name' | 'changes'>): string | undefined {
  return changes && `(select * from ${sqlName({ name })} r where ${changes})`;
}

/** The row set of the rows that belong to those of `rows`; by the index of each, whatever the planner believes. */
export function rowsOfParts({ key, parts }: GrowingTable, rows: string): string {
  if (!parts) return rows;
  return `(select p.* from ${rows} r cross join lateral (
    select * from ${sqlName(parts)} p where p.account_id = r.account_id and p.${parts.key} = r.${key} offset 0) p)`;
}

/** One part takes about as long as this, and so does its snapshot. */
const part_ms = 1_000;

const rows_at_first = 1_000;
const rows_max = 20_000;

/**
 * Calls `take` for one part of a table after the other, each in a snapshot of its own, with the row set of its rows that
 * were there at the moment and were not read then. `rows_at_most`: for tests.
 */
export async function eachPart(
  client: pg.Client,
  table: GrowingTable,
  take: (rows: string) => Promise<void>,
  rows_at_most = rows_max,
): Promise<void> {
  let limit = Math.min(rows_at_first, rows_at_most);
  for (let after: string | undefined = 'true'; after !== undefined;) {
    const begun_ms = performance.now();
    await client.query('begin isolation level repeatable read read only');
    const page = `from ${sqlName(table)} where ${after} order by account_id, ${sqlName(table)}.${table.key}`;
    const end = await endOf(client, table, `${page} offset ${limit - 1} limit 1`);
    await take(rowsOf(table, `(select * ${page} limit ${limit})`));
    await client.query('commit');
    after = end && `(account_id, ${table.key}) > ${end}`;
    limit = nextLimit(limit, performance.now() - begun_ms, rows_at_most);
  }
}

function rowsOf({ name, key, changes, is_later }: GrowingTable, page: string): string {
  const unread = `not exists (select from ${readOf(name)} u where u.account_id = r.account_id and u.key = r.${key} offset 0)`;
  return `(select r.* from ${page} r join pg_temp.moments m on m.account_id = r.account_id
    where not ${is_later}${changes === undefined ? '' : ` and ${unread}`})`;
}

/** Returns the key of the last row of a part as SQL; undefined if it is the last part. */
async function endOf(client: pg.Client, { key }: GrowingTable, row: string): Promise<string | undefined> {
  const { rows } = await client.query<{ account_id: string; key: string }>(
    `select account_id, ${key}::text as key ${row}`,
  );
  const [last] = rows;
  return last && `(${client.escapeLiteral(last.account_id)}, ${client.escapeLiteral(last.key)})`;
}

function nextLimit(limit: number, took_ms: number, rows_at_most: number): number {
  const fitting = Math.floor((limit * part_ms) / Math.max(1, took_ms));
  return Math.max(1, Math.min(rows_at_most, 2 * limit, fitting));
}

/** The temporary table of the keys that were read at the moment. */
function readOf(name: string): string {
  return `pg_temp.read_${name.split('.').at(-1)}`;
}
