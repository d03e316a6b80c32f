import { Readable } from 'node:stream';
import type { Account } from '../accounts/accounts.ts';
import { keyNames } from '../accounts/key-list.ts';
import { readLabels } from '../api/calls.ts';
import { readLines, type ActivityFilter, type Line } from '../chat/activity.ts';
import { labelsIn } from '../chat/label-filter.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { moment, oneOf, wholeNumber } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { readHighestCost } from './activity-by-cost.ts';
import { renderChat } from './chats.ts';
import { csvAnswer, type Cell } from './csv.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { keysInSight } from '../accounts/project-scope.ts';
import { renderLine } from './tasks.ts';
import { fileName } from './usage.ts';
import type { ActivityLine, ActivityPage, ExportColumn } from './views/activity.ts';

/** The parts of the app that lists of activity take. */
type Parts = { readonly db: Db; readonly clock: Clock };

const text = { type: 'string' };
const filters = {
  of: { description: 'all, tasks or chats.', schema: text },
  q: { description: 'Words of the prompt, the labels or the error, or an id.', schema: text },
  status: { description: 'Only tasks of this status.', schema: text },
  outcome: { description: 'ok or failed.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
  project: { description: 'Only of keys that are in this project now.', schema: text },
  user: { description: 'Only of this end user.', schema: text },
  tag: { description: 'Only with this tag in the metadata.', schema: text },
  error: { description: 'Only what failed with this type of error.', schema: text },
  http_status: { description: 'Only chat calls that were answered with this status.', schema: { type: 'integer' } },
  metadata: { description: 'metadata[name]=value: only with these pairs.', schema: { type: 'object' } },
  from: { description: 'Created at this time or later.', schema: text },
  to: { description: 'Created before this time.', schema: text },
  sort: { description: 'newest (first), oldest, or cost: the highest, of 30 days without `from`.', schema: text },
};
const paging = {
  limit: { description: 'Number of lines.', schema: { type: 'integer' } },
  after: { description: 'After this one in the list.', schema: text },
};
const chosen = { columns: { description: 'Names of columns, with commas; all without it.', schema: text } };

/** The account's tasks and chat calls in one list, or those of one kind. */
export const list_activity = account_endpoint('GET', '/activity', 'read', handleList, {
  query: { ...filters, ...paging },
  limited: 'own',
});

/** The same lines, all of them, as a file for spreadsheets. */
export const get_activity_csv = account_endpoint('GET', '/activity.csv', 'read', handleCsv, {
  query: { ...filters, ...chosen },
  limited: 'own',
});

/** The same as one JSON object for each line. */
export const get_activity_jsonl = account_endpoint('GET', '/activity.jsonl', 'read', handleJsonl, {
  query: { ...filters, ...chosen },
  limited: 'own',
});

const words_max = 200;

async function readFilter(db: Db, { query, account, scope }: AccountCall): Promise<ActivityFilter> {
  const account_id = account.id;
  const words = query.get('q')?.trim();
  if (words !== undefined && words.length > words_max) {
    throw new ApiError('invalid_request', `q must have at most ${words_max} characters.`, { param: 'q' });
  }
  const status = oneOf(query, 'status', ['queued', 'running', 'succeeded', 'failed']);
  const outcome = oneOf(query, 'outcome', ['ok', 'failed']);
  const [model, key_id] = [query.get('model'), query.get('key')];
  const [created_after, created_before] = [moment(query, 'from'), moment(query, 'to')];
  const oldest_first = oneOf(query, 'sort', ['newest', 'oldest', 'cost']) === 'oldest';
  const project = query.get('project');
  return {
    account_id,
    of: oneOf(query, 'of', ['all', 'tasks', 'chats']) ?? 'all',
    oldest_first,
    ...(words !== undefined && words !== '' && { words }),
    ...(status && { status }),
    ...(outcome && { ok: outcome === 'ok' }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(await keysInSight(db, account_id, scope, project)),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
    ...readLabels(query),
  };
}

async function handleList(app: Parts, call: AccountCall): Promise<Answer> {
  if (call.query.get('sort') === 'cost') return handleHighestCost(app, call);
  const { db } = app;
  const { account, query } = call;
  const after = query.get('after');
  if (after !== undefined && !isId('task', after) && !isId('req', after)) {
    throw new ApiError('invalid_request', 'after must be the id of a task or of a call.', { param: 'after' });
  }
  const limit = wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 25;
  const place = { limit, ...(after !== undefined && { after }) };
  const { lines, has_more } = await readLines(db, await readFilter(db, call), place);
  const page: ActivityPage = { data: await lineViews(db, account.id, lines), has_more };
  return { status: 200, body: page };
}

/** Without a beginning, so long is compared. */
const by_cost_ms = 30 * 86_400_000;
const by_cost_max = 100;

/** One page: after the highest costs nobody looks for more, and a further page would compare everything again. */
async function handleHighestCost(app: Parts, call: AccountCall): Promise<Answer> {
  const { db, clock } = app;
  const { account } = call;
  const filter = await readFilter(db, call);
  if (filter.words !== undefined)
    throw new ApiError('invalid_request', 'q cannot be combined with sort=cost.', { param: 'q' });
  const { created_before = new Date(clock.now()) } = filter;
  const created_after = filter.created_after ?? new Date(created_before.getTime() - by_cost_ms);
  const { lines, cut_since } = await readHighestCost(db, { ...filter, created_after, created_before }, by_cost_max);
  const page: ActivityPage = {
    data: await lineViews(db, account.id, lines),
    has_more: false,
    compared: { from: created_after.toISOString(), cut_since: cut_since?.toISOString() ?? null },
  };
  return { status: 200, body: page };
}

/** With the names of the keys of these lines. */
async function lineViews(db: Db, account_id: string, lines: readonly Line[]): Promise<ActivityLine[]> {
  const names = await keyNames(
    db,
    account_id,
    lines.map(({ line }) => line.key_id),
  );
  return lines.map((line) => lineView(account_id, line, names));
}

function lineView(account_id: string, line: Line, names: ReadonlyMap<string, string>): ActivityLine {
  if (line.what === 'task') return { what: 'task', ...renderLine(account_id, line.line, names) };
  return { what: 'chat', ...renderChat(line.line, names) };
}

async function handleCsv(app: Parts, call: AccountCall): Promise<Answer> {
  const { columns, name, rows } = await fileOf(app, call);
  return csvAnswer(name, columns, csvRows(rows));
}

async function* csvRows(rows: AsyncIterable<readonly ExportValue[]>): AsyncGenerator<Cell[]> {
  for await (const row of rows) yield row.map(cellOf);
}

/** A list as a text with commas, pairs as JSON; nothing of either as an empty cell. */
function cellOf(value: ExportValue): Cell {
  if (value === null || typeof value !== 'object') return value;
  if (isList(value)) return value.join(',');
  return Object.keys(value).length === 0 ? null : JSON.stringify(value);
}

function isList(value: object): value is readonly string[] {
  return Array.isArray(value);
}

async function handleJsonl(app: Parts, call: AccountCall): Promise<Answer> {
  const { columns, name, rows } = await fileOf(app, call);
  return {
    status: 200,
    body: Readable.from(jsonLines(columns, rows)),
    headers: {
      'content-type': 'application/jsonl; charset=utf-8',
      'content-disposition': `attachment; filename="${name}.jsonl"`,
    },
  };
}

async function fileOf(app: Parts, call: AccountCall) {
  const { db } = app;
  const { account, query } = call;
  const filter = await readFilter(db, call);
  const columns = readColumns(query);
  const range = { from: filter.created_after, to: filter.created_before };
  return { columns, name: fileName(filter.of, range), rows: rowsOf(db, account, filter, columns) };
}

function readColumns(query: Query): ExportColumn[] {
  const names = query.get('columns')?.split(',');
  if (names === undefined) return all_columns;
  const unknown = names.find((name) => !all_columns.some((column) => column === name));
  if (unknown === undefined) return all_columns.filter((column) => names.includes(column));
  const message = `columns has ${JSON.stringify(unknown.slice(0, 60))}, which is none of ${all_columns.join(', ')}.`;
  throw new ApiError('invalid_request', message, { param: 'columns' });
}

/** More than a spreadsheet can hold. */
const rows_max = 1_000_000;
const page_size = 1_000;
/** To look for words or labels costs the same for few lines as for many. */
const page_size_of_words = 5_000;

async function* rowsOf(
  db: Db,
  { id: account_id }: Account,
  filter: ActivityFilter,
  columns: readonly ExportColumn[],
): AsyncGenerator<ExportValue[]> {
  const is_searched = filter.words !== undefined || labelsIn(filter).length > 0;
  const limit = is_searched ? page_size_of_words : page_size;
  let after: string | undefined;
  for (let count = 0; count < rows_max;) {
    const { lines, has_more } = await readLines(db, filter, { limit, ...(after !== undefined && { after }) });
    for (const view of await lineViews(db, account_id, lines)) yield columns.map((column) => cells[column](view));
    count += lines.length;
    after = lines.at(-1)?.line.id;
    if (!has_more || after === undefined) return;
  }
}

async function* jsonLines(
  columns: readonly string[],
  rows: AsyncIterable<readonly ExportValue[]>,
): AsyncGenerator<string> {
  for await (const row of rows) {
    const entries = columns.map((column, index) => [column, row[index] ?? null]);
    yield `${JSON.stringify(Object.fromEntries(entries))}\n`;
  }
}

type ExportValue = string | number | null | readonly string[] | Readonly<Record<string, string>>;

type Cells = { readonly [column in ExportColumn]: (line: ActivityLine) => ExportValue };

const cells: Cells = {
  type: ({ what }) => what,
  id: ({ id }) => id,
  time: ({ created_at }) => created_at,
  model: ({ model }) => model,
  style: (line) => (line.what === 'chat' ? line.style : null),
  key: ({ key }) => key.id,
  key_name: ({ key }) => key.name,
  status: (line) => (line.what === 'task' ? line.status : line.status < 400 ? 'succeeded' : 'failed'),
  http_status: (line) => (line.what === 'chat' ? line.status : null),
  finish: (line) => (line.what === 'chat' ? line.finish : null),
  error_type: (line) => (line.what === 'task' ? (line.error?.type ?? null) : line.error_type),
  error_message: (line) => (line.what === 'task' ? (line.error?.message ?? null) : null),
  prompt: (line) => (line.what === 'task' ? line.prompt : null),
  started_at: (line) => (line.what === 'task' ? line.started_at : null),
  completed_at: (line) => (line.what === 'task' ? line.completed_at : null),
  took_ms: tookMs,
  first_content_ms: (line) => (line.what === 'chat' ? line.first_content_ms : null),
  input_tokens: (line) => (line.what === 'chat' ? line.input_tokens : null),
  cached_input_tokens: (line) => (line.what === 'chat' ? line.cached_input_tokens : null),
  output_tokens: (line) => (line.what === 'chat' ? line.output_tokens : null),
  files: (line) => (line.what === 'task' ? line.files.length : null),
  cost: ({ cost }) => cost.exact,
  currency: ({ cost }) => cost.currency,
  user: ({ user }) => user,
  tags: ({ tags }) => tags,
  metadata: ({ metadata }) => metadata,
};

const all_columns: ExportColumn[] = [
  'type',
  'id',
  'time',
  'model',
  'style',
  'key',
  'key_name',
  'status',
  'http_status',
  'finish',
  'error_type',
  'error_message',
  'prompt',
  'started_at',
  'completed_at',
  'took_ms',
  'first_content_ms',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'files',
  'cost',
  'currency',
  'user',
  'tags',
  'metadata',
];

function tookMs(line: ActivityLine): number | null {
  if (line.what === 'chat') return line.total_ms;
  return line.completed_at === null ? null : Date.parse(line.completed_at) - Date.parse(line.created_at);
}
