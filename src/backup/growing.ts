import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import { growing_records } from '../chat/record-row.ts';
import { growing_owners, growing_playground } from '../contents/playground.ts';
import { growing_contents } from '../contents/stored.ts';
import { growing_background_responses } from '../conversations/background.ts';
import { growing_conversations } from '../conversations/conversations.ts';
import { growing_responses } from '../conversations/stored-responses.ts';
import { sqlName, type GrowingTable, type Table } from '../db/tables.ts';
import { growing_feedback } from '../feedback/feedback.ts';
import { growing_entries, moments } from '../money/ledger.ts';
import { growing_refusals } from '../money/refusals.ts';
import { growing_margins, growing_usage } from '../money/usage.ts';
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
  growing_background_responses,
  growing_conversations,
  growing_owners,
  growing_playground,
  growing_feedback,
  growing_usage,
  growing_margins,
  growing_refusals,
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
  // Parts are found by their keys, whatever the planner believes; and what it takes for expensive then is not compiled.
  await client.query(`set enable_seqscan = off; set jit = off;
    create temp table moments (account_id text primary key, entries bigint not null, at timestamptz not null,
      summed_to timestamptz not null)`);
  for (const table of growing_tables) {
    if (table.changing === undefined) continue;
    const typed = keyColumns(table).map((column) => `${column} text`);
    await client.query(`create temp table ${readOf(table.name)} (${typed}, primary key (${keyColumns(table)}))`);
  }
}

/** Notes the moment, within the snapshot that shows it: how far the ledger is, and which rows are read now. */
export async function noteMoment(client: pg.Client): Promise<void> {
  await client.query(`insert into pg_temp.moments (account_id, entries, at, summed_to) ${moments}`);
  for (const table of growing_tables) {
    if (table.changing !== undefined)
      await client.query(`insert into ${readOf(table.name)} select ${keyColumns(table)} from ${table.changing} r`);
  }
}

/** The row set of the rows that belong to those of `rows`; by the index of each, whatever the planner believes. */
export function rowsOfParts({ keys, parts }: GrowingTable, rows: string): string {
  if (!parts) return rows;
  const same = parts.keys.map((key, i) => `p.${key} = r.${keys[i]}`).join(' and ');
  return `(select p.* from ${rows} r cross join lateral (
    select * from ${sqlName(parts)} p where p.account_id = r.account_id and ${same} offset 0) p)`;
}

/** One part takes about as long as this, and so does its snapshot. */
const part_ms = 1_000;

const rows_at_first = 1_000;
const rows_max = 20_000;

/** A part ends at the row with which it has so many: an account with large rows may follow one with small ones. */
const part_bytes = 16_000_000;

/**
 * Rest after a part while others work in the database, in times of what the part took: reading, sending and compressing
 * take two cores, which others have to themselves for so long. Beside callers that use all of two cores a backup takes four
 * times as long, and leaves them 0.94 of their rate, and not 0.79 (bench/results/backup.md).
 */
const rest_per_part = 3;

/** For tests: bounds of a part, and what a rest of so many milliseconds is. */
export type PartOptions = { rows?: number; bytes?: number; rest?: (ms: number) => Promise<unknown> };

/**
 * Calls `take` for one part of a table after the other, each in a snapshot of its own, with the row set of its rows that
 * were there at the moment and were not read then.
 */
export async function eachPart(
  client: pg.Client,
  table: GrowingTable,
  take: (rows: string) => Promise<void>,
  { rows: rows_at_most = rows_max, bytes: bytes_at_most = part_bytes, rest = setTimeout }: PartOptions = {},
): Promise<void> {
  const key = `(${keyColumns(table)})`;
  let limit = Math.min(rows_at_first, rows_at_most);
  for (let after: string | undefined = 'true'; after !== undefined;) {
    const begun_ms = performance.now();
    await client.query('begin isolation level repeatable read read only');
    const end = await endOf(client, table, { after, rows: limit, bytes: bytes_at_most });
    const within: string = end === undefined ? after : `${after} and ${key} <= ${end}`;
    await take(rowsOf(table, pageOf(table, within, limit)));
    await client.query('commit');
    const took_ms = performance.now() - begun_ms;
    after = end && `${key} > ${end}`;
    limit = nextLimit(limit, took_ms, rows_at_most);
    if (await othersWork(client)) await rest(rest_per_part * took_ms);
  }
}

/** At one look alone, callers may be between two statements: they compute themselves, too. */
const looks = 3;
const look_every_ms = 5;

/** Tells whether another connection of this database is at work at one of some looks. */
async function othersWork(client: pg.Client): Promise<boolean> {
  for (let look = 0; look < looks; look++) {
    if (look > 0) await setTimeout(look_every_ms);
    const { rows } = await client.query(
      `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
        and state = 'active' and backend_type = 'client backend' limit 1`,
    );
    if (rows.length > 0) return true;
  }
  return false;
}

function rowsOf(table: GrowingTable, page: string): string {
  const { name, changing, is_later } = table;
  const same = keyColumns(table).map((column) => `u.${column} = r.${column}::text`);
  const unread = `not exists (select from ${readOf(name)} u where ${same.join(' and ')} offset 0)`;
  return `(select r.* from ${page} r join pg_temp.moments m on m.account_id = r.account_id
    where not ${is_later}${changing === undefined ? '' : ` and ${unread}`})`;
}

/** The row set of the first rows of a table that meet a condition, by their keys. */
function pageOf(table: GrowingTable, condition: string, limit: number): string {
  return `(select * from ${sqlName(table)} where ${condition} order by ${keyColumns(table)} limit ${limit})`;
}

type Page = { after: string; rows: number; bytes: number };

/** Returns the key of the last row of a part as SQL; undefined if the table ends with the part. */
async function endOf(client: pg.Client, table: GrowingTable, page: Page): Promise<string | undefined> {
  const columns = keyColumns(table);
  const first = async (query: string) => {
    const { rows } = await client.query<Record<string, string>>(query);
    return rows[0] && `(${columns.map((column) => client.escapeLiteral(rows[0]?.[column] ?? '')).join(', ')})`;
  };
  const texts = columns.map((column) => `r.${column}::text`).join(', ');
  const rows = pageOf(table, page.after, page.rows);
  const order = columns.map((column) => `r.${column}`).join(', ');
  const by_bytes =
    table.bytes &&
    (await first(`select ${texts} from (
      select ${order}, sum(${table.bytes}) over (order by ${order} rows unbounded preceding) as bytes from ${rows} r) r
      where bytes >= ${page.bytes} order by ${order} limit 1`));
  return by_bytes ?? first(`select ${texts} from ${rows} r offset ${page.rows - 1} limit 1`);
}

function nextLimit(limit: number, took_ms: number, rows_at_most: number): number {
  const fitting = Math.floor((limit * part_ms) / Math.max(1, took_ms));
  return Math.max(1, Math.min(rows_at_most, 2 * limit, fitting));
}

/** The columns of the primary key, which a text of SQL joins by commas. */
function keyColumns({ keys }: GrowingTable): string[] {
  return ['account_id', ...keys];
}

/** The temporary table of the keys that were read at the moment. */
function readOf(name: string): string {
  return `pg_temp.read_${name.split('.').at(-1)}`;
}
