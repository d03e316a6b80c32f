import { conditionsOf } from '../db/conditions.ts';
import type { Db, Queryable } from '../db/database.ts';
import { highestCostIds, type HighestCost } from '../db/highest-cost.ts';
import { firstIdSince } from '../lib/ids.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import { bodyOf, task_columns, type Task, type TaskStatus } from './task.ts';

export type TaskFilter = KeysOfProjects & {
  account_id: string;
  limit: number;
  /** Tasks created before this one (further down the list). */
  after?: string;
  /** Tasks created after this one (further up the list). */
  before?: string;
  status?: TaskStatus;
  model?: string;
  created_after?: Date;
  created_before?: Date;
  metadata: Record<string, string>;
};

export type TaskPage = { bodies: string[]; ids: string[]; has_more: boolean };

/** Tasks of an account, newest first: ids sort by time, so they are the cursor. */
export async function listTasks(db: Queryable, filter: TaskFilter): Promise<TaskPage> {
  const upwards = filter.before !== undefined;
  if (filter.model?.includes('\0')) return { bodies: [], ids: [], has_more: false }; // no text of the database has it
  const rows = await readRows<Task>(db, task_columns, filter, [[`${time_of_own} > ?`, filter.created_after]]);
  const page = rows.slice(0, filter.limit);
  if (upwards) page.reverse();
  return { bodies: page.map(bodyOf), ids: page.map((task) => task.id), has_more: rows.length > filter.limit };
}

/** Tasks with these columns, one more than the limit. */
function readRows<Row extends object>(
  db: Queryable,
  columns: string,
  filter: LineFilter,
  more: readonly Filter[],
): Promise<Row[]> {
  if (filter.tag !== undefined || hasPairs(filter)) return readWithLabels<Row>(db, columns, filter, more);
  const { text, values } = pageOf(columns, filter, more);
  return db.query<Row>(text, values);
}

/** So many tasks are looked at before the indexes of labels are asked: what many tasks have fills a page by then. */
const looked_at = 1_000;

/** Tasks that carry these pairs and this tag, one more than the limit. */
async function readWithLabels<Row extends object>(
  db: Queryable,
  columns: string,
  filter: LineFilter,
  more: readonly Filter[],
): Promise<Row[]> {
  const { before, limit } = filter;
  const { text, values } = filtersOf(filter, more);
  const order = `order by id ${before === undefined ? 'desc' : 'asc'} limit $${values.length + 1}`;
  const place = conditionsOf(placeOf(filter)).text; // with the first of the same values
  const near = await db.query<Row>(
    `select ${columns} from (
       select * from tasks where ${place} order by id ${before === undefined ? 'desc' : 'asc'} limit ${looked_at}) tasks
      where ${text} ${order}`,
    [...values, limit + 1],
  );
  if (near.length > limit) return near;
  const labels = labelsIn(filter);
  const has_labels = labels.map(({ has }, index) => has(`$${values.length + 2 + index}`)).join(' and ');
  return db.query<Row>(
    `with matching as materialized (select account_id, id from tasks where ${has_labels})
     select ${columns} from (
       select t.* from matching m cross join lateral (select * from tasks where ${text} and id = m.id offset 0) t
        where m.account_id = $1) t
      ${order}`,
    [...values, limit + 1, ...labels.map(({ value }) => value)],
  );
}

type Label = { has: (value: string) => string; value: string };

/** Returns the labels by which an index finds tasks, those of other accounts with the same hash included. */
function labelsIn({ metadata = {}, tag }: LineFilter): Label[] {
  const pairs: Label = {
    has: (value) => `metadata <> '{}' and task_pairs(account_id, metadata) @> task_pairs($1, ${value})`,
    value: JSON.stringify(metadata),
  };
  const hasTag = (value: string) =>
    `strpos(metadata, '"tags":"') > 0 and task_tags(account_id, metadata) @> array[hashtextextended($1 || ' ' || ${value}, 0)]`;
  return [
    ...(hasPairs({ metadata }) ? [pairs] : []),
    ...(tag === undefined ? [] : [{ has: hasTag, value: escaped(tag) }]),
  ];
}

function hasPairs({ metadata = {} }: { metadata?: LineFilter['metadata'] }): boolean {
  return Object.keys(metadata).length > 0;
}

/** A text as JSON has it between its quotes. */
function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/**
 * The time in a list of one account. The order of its ids has it already; as a plain column, PostgreSQL may take the index
 * of all accounts by time, and sorts whatever it finds there before it has the first line.
 */
export const time_of_own = "created_at + interval '0'";

/** Ids are made about when their task is. */
const id_slack_ms = 3_600_000;

/**
 * The statement of a page, one row more than its limit. Tasks that have not ended are few, and have an index of their
 * own; those that have ended have indexes by what rarely occurs. A page is the newest of both.
 */
function pageOf(columns: string, filter: LineFilter, more: readonly Filter[]) {
  const { before, model, key_id, limit, error_type, status = error_type === undefined ? undefined : 'failed' } = filter;
  const { text, values } = filtersOf(filter, more);
  const order = `order by id ${before === undefined ? 'desc' : 'asc'} limit $${values.length + 1}`;
  const part = (condition: string) => `(select ${columns} from tasks where ${text}${condition} ${order})`;
  const parts =
    status === undefined && model === undefined && key_id === undefined ? [part('')] : partsBy(status).map(part);
  return {
    text: parts.length === 1 ? (parts[0] ?? '') : `${parts.join(' union all ')} ${order}`,
    values: [...values, limit + 1],
  };
}

type Filter = readonly [condition: string, value: unknown];

function placeOf(
  filter: Pick<LineFilter, 'account_id' | 'after' | 'before' | 'created_after' | 'created_before'>,
): Filter[] {
  return [
    ['account_id = ?', filter.account_id],
    ['id < ?', filter.after],
    ['id > ?', filter.before],
    ...rangeOf(filter),
  ];
}

const last_route = `(select route from attempts a where a.account_id = tasks.account_id and a.task_id = tasks.id
  order by number desc limit 1)`;

const tag_condition = `exists (select from string_to_table(readable_metadata(metadata) ->> 'tags', ',') part where trim(part) = ?)`;

function filtersOf(filter: LineFilter, more: readonly Filter[]) {
  const { id, status, model } = filter;
  return conditionsOf([
    ...placeOf(filter),
    ['id = ?', id],
    ['status = ?', status],
    ['model = ?', model],
    [`${last_route} = ?`, filter.route],
    ...keyConditions(filter),
    ...labelConditions(filter),
    ...more,
  ]);
}

function labelConditions({ error_type, tag, metadata = {} }: LineFilter): Filter[] {
  return [
    ['error_type = ?', error_type],
    // The first rules out nearly all, without reading JSON.
    ['strpos(metadata, ?) > 0', tag === undefined ? undefined : escaped(tag)],
    [tag_condition, tag],
    [
      `not exists (select from unnest(?::text[]) as pair
         where strpos(metadata, '{' || pair) <> 1 and strpos(metadata, ',' || pair) = 0)`,
      hasPairs({ metadata }) ? jsonPairs(metadata) : undefined,
    ],
  ];
}

function rangeOf({ created_after, created_before }: Pick<LineFilter, 'created_after' | 'created_before'>): Filter[] {
  return [
    ['id > ?', created_after && firstIdSince('task', Math.max(0, created_after.getTime() - id_slack_ms))],
    ['id < ?', created_before && firstIdSince('task', Math.max(0, created_before.getTime() + id_slack_ms))],
    [`${time_of_own} < ?`, created_before],
  ];
}

function partsBy(status: TaskStatus | undefined): string[] {
  const [unfinished, ended] = [' and completed_at is null', ' and completed_at is not null'];
  switch (status) {
    case undefined:
      return [unfinished, ended];
    case 'queued':
    case 'running':
      return [unfinished];
    case 'succeeded':
      return [`${ended} and error_type is null`];
    case 'failed':
      return [`${ended} and error_type is not null`];
  }
}

/**
 * `"key":"value"` as our own JSON texts have it, after their `{` or a comma; inside of a string no quote
 * follows a comma, it is escaped. Not as jsonb, which refuses NUL and lone surrogates.
 */
function jsonPairs(metadata: Record<string, string>): string[] {
  return Object.entries(metadata).map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
}

/** A task as one line of a list. */
export type TaskLine = Pick<
  Task,
  | 'id'
  | 'key_id'
  | 'model'
  | 'kind'
  | 'metadata'
  | 'currency'
  | 'status'
  | 'cost'
  | 'estimate'
  | 'error_type'
  | 'error_message'
  | 'files'
  | 'files_removed_at'
  | 'created_at'
  | 'started_at'
  | 'completed_at'
> & { prompt: string | null };

export type LineFilter = Omit<TaskFilter, 'metadata'> & {
  key_id?: string;
  id?: string;
  /** The last one that was tried. */
  route?: string;
  error_type?: string;
  /** One of the tags in the metadata. */
  tag?: string;
  /** Pairs, all of which a task must have. */
  metadata?: Record<string, string>;
};

/**
 * The beginning of the input's prompt, as JSON writes it; an input without one has none. By a regular expression it would
 * take a millisecond.
 */
const prompt_start = `substr(input, nullif(strpos(input, '"prompt":"'), 0) + 9, 322) as prompt_start`;

const plain_columns = `id, key_id, model, kind, metadata, currency, status, cost, estimate, error_type, error_message, files,
  files_removed_at, created_at, started_at, completed_at`;

const line_columns = `${plain_columns}, ${prompt_start}`;

type LinePage = { lines: TaskLine[]; has_more: boolean };

/** The same tasks as lines, newest first. */
export async function listTaskLines(db: Queryable, filter: LineFilter): Promise<LinePage> {
  const rows = await readRows<LineRow>(db, line_columns, filter, [[`${time_of_own} >= ?`, filter.created_after]]);
  return pageWith(rows, filter);
}

function pageWith(rows: readonly LineRow[], { before, limit }: LineFilter): LinePage {
  const lines = rows.slice(0, limit).map(({ prompt_start: start, ...line }) => ({ ...line, prompt: promptOf(start) }));
  return { lines: before === undefined ? lines : lines.toReversed(), has_more: rows.length > limit };
}

/** The tasks of a time with the highest cost, first: among its newest `compared_max`. */
export async function highestCostTaskLines(
  db: Queryable,
  filter: Omit<LineFilter, 'after' | 'before' | 'id' | 'route'>,
  compared_max: number,
): Promise<Omit<HighestCost, 'ids'> & { lines: TaskLine[] }> {
  const { account_id, limit, status, model, created_after } = filter;
  const { key_id, ...of_any_key } = filter;
  // Costs are compared among calls that the reader sees: others say nothing, not even by their number.
  const range: Filter[] = [...placeOf(filter), [`${time_of_own} >= ?`, created_after], ...keyConditions(of_any_key)];
  const labels = labelConditions(filter);
  const { text, values } = conditionsOf([
    ...range,
    ['status = ?', status],
    ['model = ?', model],
    ['key_id = ?', key_id],
    ...labels,
  ]);
  const place = conditionsOf(range).text; // with the first of the same values
  const more = labels.some(([, value]) => value !== undefined) ? ', metadata, error_type' : '';
  const rows = `select account_id, id, model, key_id, status, cost, created_at${more} from tasks where ${place}`;
  const { ids, ...compared } = await highestCostIds(db, { rows, only: text, values }, { limit, compared_max });
  const lines = await db.query<LineRow>(
    `select ${line_columns} from tasks where account_id = $1 and id = any($2) order by cost desc, id desc`,
    [account_id, ids],
  );
  return { lines: pageWith(lines, { account_id, limit }).lines, ...compared };
}

type LineRow = Omit<TaskLine, 'prompt'> & { prompt_start: string | null };

/** So many tasks are read themselves before the index of words is asked: words that many tasks have fill a page by then. */
const read_for_words = 200;
const words_limit_ms = 3_000;

/**
 * The tasks that have all of these words in their input, metadata or error, as words or as their beginnings, as lines,
 * newest first. None if it is a text without words. Throws as a statement does that takes too long (isStopped).
 */
export async function searchTaskLines(db: Pick<Db, 'tx'>, filter: LineFilter, words: string): Promise<LinePage> {
  const rows = await db.tx(async (tx) => {
    await tx.query(`set local statement_timeout = ${words_limit_ms}`);
    await tx.query('set local enable_seqscan = off'); // it would take the words of every task of every account
    return readWithWords(tx, filter, words);
  });
  return pageWith(rows, filter);
}

/** One more than the limit. */
async function readWithWords(tx: Queryable, filter: LineFilter, words: string): Promise<LineRow[]> {
  const { before, limit } = filter;
  const { text, values } = filtersOf(filter, [[`${time_of_own} >= ?`, filter.created_after]]);
  const place = conditionsOf(placeOf(filter)).text; // with the first of the same values
  const order = `order by id ${before === undefined ? 'desc' : 'asc'}`;
  const [words_at, limit_at] = [values.length + 1, values.length + 2];
  const query = `(select task_query($1, $${words_at}))`;
  const has_words = `task_words(account_id, input, metadata) @@ ${query}`;
  // The words of a failed task are those of its error, too.
  const failed_with_words = `error_type is not null
    and task_words(account_id, input, error_type || ' ' || coalesce(error_message, '') || ' ' || metadata) @@ ${query}`;
  const all_values = [...values, words.replaceAll('\0', ' '), limit + 1];
  const near = await tx.query<LineRow>(
    `select ${line_columns} from (select * from tasks where ${place} ${order} limit ${read_for_words}) tasks
      where ${text} and (${has_words} or ${failed_with_words}) ${order} limit $${limit_at}`,
    all_values,
  );
  if (near.length > limit) return near;
  // Prompts are read of the lines of the page alone: that takes longer than all the rest.
  return tx.query<LineRow>(
    `with matching as materialized (
       select account_id, id from tasks where completed_at is not null and ${has_words}
        union
       select account_id, id from tasks where ${failed_with_words})
     select ${line_columns} from (
       (select * from tasks where ${text} and completed_at is null and ${has_words} ${order} limit $${limit_at})
       union all
       (select t.* from matching m cross join lateral (select * from tasks where ${text} and id = m.id offset 0) t
         where m.account_id = $1 ${order} limit $${limit_at})) t
     ${order} limit $${limit_at}`,
    all_values,
  );
}

/** The first 160 characters of a JSON string, of which an escape is one here. */
const first_characters = /^"(?:[^"\\]|\\.){0,160}/su;

/** As much of a JSON string as has no escape that was cut in two. */
const whole_characters = /^"(?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*/i;

function promptOf(start: string | null): string | null {
  if (start === null) return null;
  const cut = first_characters.exec(start)?.[0] ?? '"';
  const text = start[cut.length] === '"' ? `${cut}"` : `${whole_characters.exec(cut)?.[0] ?? '"'}…"`;
  const prompt: unknown = JSON.parse(text);
  return typeof prompt === 'string' ? prompt : null;
}

/** Work that operators ask for: of all accounts, in a time. */
export type AllFilter = {
  from: Date;
  to: Date;
  limit: number;
  status?: TaskStatus;
  model?: string;
  /** The last one that was tried. */
  route?: string;
  error_type?: string;
  /** Work created before this one: further down the list. */
  after?: { created_at: Date; id: string };
};

/** Returns the conditions of the time and the place in it; in the order of `created_at` and id, an index has them. */
export function timeOf({ from, to, after }: Pick<AllFilter, 'from' | 'to' | 'after'>): Filter[] {
  return [
    ['created_at >= ?', from],
    ['created_at < ?', to],
    [
      '(created_at, id) < ((?::text[])[1]::timestamptz, (?::text[])[2])',
      after && [after.created_at.toISOString(), after.id],
    ],
  ];
}

/** A task in a list of all accounts, without its prompt. */
export type PlainTaskLine = Omit<TaskLine, 'prompt'> & { account_id: string; route: string | null };

/** Tasks of all accounts in a time, the newest first, one more than the limit: for operators. */
export async function listAllTaskLines(
  db: Queryable,
  { status, route, ...filter }: AllFilter,
): Promise<PlainTaskLine[]> {
  const { text, values } = conditionsOf([
    ...timeOf(filter),
    ['status = ?', status],
    ['model = ?', filter.model],
    ['error_type = ?', filter.error_type],
    [`${last_route} = ?`, route],
  ]);
  return db.query<PlainTaskLine>(
    `select account_id, ${plain_columns}, ${last_route} as route from tasks where ${text}
      order by created_at desc, id desc limit $${values.length + 1}`,
    [...values, filter.limit + 1],
  );
}

/** Returns the last route that each of an account's tasks tried; a task that tried none is not there. */
export async function lastRoutes(
  db: Queryable,
  account_id: string,
  task_ids: readonly string[],
): Promise<Map<string, string>> {
  if (task_ids.length === 0) return new Map();
  const rows = await db.query<{ task_id: string; route: string }>(
    `select distinct on (task_id) task_id, route from attempts where account_id = $1 and task_id = any($2)
      order by task_id, number desc`,
    [account_id, task_ids],
  );
  return new Map(rows.map(({ task_id, route }) => [task_id, route]));
}

/** Returns true if the account has this task; a cursor must name one of its own. */
export async function hasTask(db: Queryable, account_id: string, id: string): Promise<boolean> {
  const rows = await db.query('select 1 from tasks where account_id = $1 and id = $2', [account_id, id]);
  return rows.length === 1;
}

/** Tells whether a task is still there that began, or ended, before a time. */
export async function hasTasksBefore(db: Queryable, at: Date): Promise<boolean> {
  const rows = await db.query(
    `(select 1 from tasks where completed_at < $1 limit 1)
     union all (select 1 from tasks where completed_at is null and created_at < $1 limit 1)`,
    [at],
  );
  return rows.length > 0;
}

/** Finds a task of whichever account, for the operator. */
export async function findTask(db: Queryable, id: string): Promise<Task | undefined> {
  const rows = await db.query<Task>(`select ${task_columns} from tasks where id = $1`, [id]);
  return rows[0];
}

/** Lists the newest tasks of one account or of all, for the operator. */
export async function listAllTasks(
  db: Queryable,
  filter: { account_id: string | undefined; status: string | undefined; limit: number },
): Promise<Task[]> {
  return db.query<Task>(
    `select ${task_columns} from tasks where ($1::text is null or account_id = $1) and ($2::text is null or status = $2)
      order by id desc limit $3`,
    [filter.account_id ?? null, filter.status ?? null, filter.limit],
  );
}
