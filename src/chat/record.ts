import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { makeBatcher } from '../db/batcher.ts';
import { conditionsOf, type Conditions } from '../db/conditions.ts';
import { isUnavailable, type Db, type Queryable } from '../db/database.ts';
import { highestCostIds, type HighestCost } from '../db/highest-cost.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { Clock } from '../lib/clock.ts';
import { firstIdSince } from '../lib/ids.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import type { Money } from '../money/money.ts';
import type { Journal } from '../storage/journal.ts';
import type { ToolCalls, Usage } from '../styles/conversation.ts';
import { no_usage } from '../styles/usage.ts';
import { time_of_own, timeOf, type AllFilter } from '../tasks/list.ts';
import { keepPrice, priceIdOf } from './call-prices.ts';
import { labelConditions, labelsIn, type LabelFilter } from './label-filter.ts';
import type { PricedRequest } from './priced-request.ts';
import type { ChatAttempt, ChatOutcome } from './outcome.ts';
import { insertRecords, type StoredRecord } from './record-row.ts';
import type { Charge } from './settle.ts';
import { unrecordedEntry } from './unsettled.ts';

/** The stored record of a call: everything but its content. */
export type ChatRecord = {
  id: string;
  model: string;
  style: string;
  stream: boolean;
  status: number;
  error_type: string | null;
  /** The message of the error that its caller got. */
  error_message: string | null;
  finish: string | null;
  attempts: ChatAttempt[];
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  cache_write_1h_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  counted_here: boolean;
  /** The uses of tools that a provider runs; null if the call had none. */
  tools: RecordedTools | null;
  /** Names by the caller: its end user, and pairs of metadata. */
  end_user: string | null;
  metadata: Record<string, string> | null;
  cost: Money;
  currency: string;
  first_content_ms: number | null;
  total_ms: number;
  created_at: Date;
  /** Of its prices; null where they are not stored. */
  price_id: string | null;
};

/** `left_out`: types of the caller's tools that the model was not given; `calls`: of tools that the upstream ran. */
export type RecordedTools = { left_out?: readonly string[]; calls?: ToolCalls };

export type FinishedCall = {
  outcome: ChatOutcome;
  charge: Charge | undefined;
  charged: Money;
  upstream_cost: Money | null;
  is_journaled?: boolean;
  created_at: Date;
  total_ms: number;
};

/** The status of a caller who did not wait for the answer (nginx's, for the record only). */
const gone_status = 499;

/** The parts of the app that writing a record takes. */
export type RecordParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Logger;
  readonly journal: Journal;
  readonly metrics: Metrics;
  begin(): () => void;
};

/**
 * Writes the record of a call, together with those of its neighbours. Resolves when it is written, and never rejects: a
 * failure is logged, the money is right without it.
 */
export function writeRecord(parts: RecordParts, priced: PricedRequest, finished: FinishedCall): Promise<void> {
  const row = rowOf(priced, finished);
  countCall(parts.metrics, priced, finished);
  keepPrice(parts, priced.pricing);
  const end = parts.begin();
  const write = () => writerOf(parts).write(row);
  const writing = finished.is_journaled ? writeDown(parts, [row], true).catch(write) : write();
  return writing.then(end, (error: unknown) => {
    end();
    const { request_id } = priced;
    if (!isThere(error)) parts.log.error({ request_id, err: error }, 'the record of a chat call could not be written');
  });
}

type Row = StoredRecord & { id: string; account_id: string };

async function writeDown({ clock, journal }: RecordParts, rows: readonly Row[], is_unsettled: boolean): Promise<void> {
  const entries = rows.map((record) =>
    unrecordedEntry(clock, { account_id: record.account_id, ref: record.id, is_unsettled, record }),
  );
  await journal.write(entries);
}

/** A repeat after a lost answer. To refuse it is an eighth cheaper for all others than `on conflict do nothing`. */
function isThere(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.constraint === 'chat_calls_pkey';
}

/** Returns the record of a call that has ended, as it is stored. */
export function rowOf(priced: PricedRequest, finished: FinishedCall): Row {
  const { caller, request, request_id, model, labels, pricing } = priced;
  const { outcome, charge, charged, upstream_cost, created_at, total_ms } = finished;
  return {
    account_id: caller.account.id,
    id: request_id,
    key_id: caller.key.id,
    model: model.id,
    style: request.style.name,
    stream: request.stream,
    status: outcome.error?.status ?? (outcome.is_gone ? gone_status : 200),
    error_type: outcome.error?.type,
    error_message: outcome.error && storable(outcome.error.extras.record_message ?? outcome.error.message),
    finish: outcome.finish === undefined ? undefined : storable(outcome.finish),
    attempts: outcome.attempts.map((attempt) => storableAttempt(attempt, model.id)),
    ...no_usage,
    ...charge?.usage,
    counted_here: charge?.counted_here ?? false,
    tools: toolsOf(outcome, charge),
    ...labels,
    cost: String(charged),
    currency: caller.account.currency,
    first_content_ms: outcome.first_content_ms,
    total_ms,
    created_at,
    upstream_cost: upstream_cost?.toString(),
    price_id: priceIdOf(pricing),
  };
}

/** Counts a call that has ended. */
export function countCall(metrics: Metrics, { model, request, caller }: PricedRequest, finished: FinishedCall): void {
  const { outcome, charge, charged, total_ms } = finished;
  const route = outcome.attempts.at(-1)?.route ?? '';
  const of_route = { model: model.id, route };
  const ended = outcome.error?.type ?? (outcome.is_gone ? 'caller gone' : 'ok');
  metrics.chat_calls.add({ ...of_route, style: request.style.name, outcome: ended });
  metrics.chat_seconds.observe(of_route, total_ms / 1000);
  if (outcome.first_content_ms !== undefined)
    metrics.chat_first_content_seconds.observe(of_route, outcome.first_content_ms / 1000);
  for (const attempt of outcome.attempts)
    metrics.route_attempts.add({ route: attempt.route, outcome: attempt.outcome });
  const { tool_calls, ...tokens }: Usage = charge?.usage ?? no_usage;
  for (const [unit, count] of Object.entries({ ...tokens, ...tool_calls }))
    metrics.units.add({ model: model.id, unit }, count);
  metrics.spend.add({ model: model.id, currency: caller.account.currency }, Number(charged) / 1e6);
}

function toolsOf({ tools_left_out }: ChatOutcome, charge: Charge | undefined): RecordedTools | undefined {
  const left_out = tools_left_out.slice(0, tools_max).map(storable);
  const calls = Object.entries(charge?.usage.tool_calls ?? {}).filter(([, count]) => count > 0);
  if (left_out.length === 0 && calls.length === 0) return undefined;
  return {
    ...(left_out.length > 0 && { left_out }),
    ...(calls.length > 0 && { calls: Object.fromEntries(calls) }),
  };
}

/** A caller may name thousands. */
const tools_max = 20;

/** An upstream's words: jsonb takes neither NUL nor half a surrogate pair, and nobody reads more. */
function storable(text: string): string {
  return text.slice(0, 600).toWellFormed().replaceAll('\u0000', '');
}

function storableAttempt({ model, reason, upstream_id, ...attempt }: ChatAttempt, of_call: string): ChatAttempt {
  return {
    ...attempt,
    ...(model !== of_call && model !== undefined && { model }),
    ...(reason !== undefined && { reason: storable(reason) }),
    ...(upstream_id !== undefined && { upstream_id: storable(upstream_id) }),
  };
}

/**
 * Time that a record waits for others: one in a batch of 64 costs the database 15 µs, a single one 100 µs, and
 * each batch wakes it.
 */
const linger_ms = 50;

type Writer = {
  write(row: Row): Promise<unknown>;
  /** The write of the last record: records are written in the order in which their calls end. */
  newest: Promise<unknown>;
};

const writers = new WeakMap<Db, Writer>();

function writerOf(parts: RecordParts): Writer {
  const existing = writers.get(parts.db);
  if (existing) return existing;
  const batcher = makeBatcher<Row, undefined>({
    together: async (rows) => {
      const write = () => insertRecords(parts, rows);
      // A database that is away keeps nobody: from the disk they are written when it is back.
      await write().catch(async (error: unknown) => {
        if (!isUnavailable(error)) throw error;
        await writeDown(parts, rows, false).catch(() => retryWhileUnavailable(write));
      });
      return rows.map(() => undefined);
    },
    linger_ms,
  });
  const write = (row: Row) => (writer.newest = batcher(row));
  const writer: Writer = { write, newest: Promise.resolve() };
  writers.set(parts.db, writer);
  return writer;
}

const columns = `id, model, style, stream, status, error_type, error_message, finish, attempts, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, first_content_ms, total_ms, created_at, tools,
  end_user, metadata, price_id,
  coalesce(cache_write_1h_tokens, 0) as cache_write_1h_tokens`;

/**
 * The record of an account's call; undefined if there is none, or the call has not ended. That of a call that has just
 * ended may still be on its way.
 */
export async function findRecord(db: Db, account_id: string, id: string): Promise<KeyedRecord | undefined> {
  const written = await selectRecord(db, account_id, id);
  if (written) return written;
  await writers.get(db)?.newest.catch(() => undefined);
  return selectRecord(db, account_id, id);
}

/**
 * The same, after a wait of three seconds at most for the record of a call of the last hour: the end of a stream reaches
 * its caller before the call is settled, and another node may write the record.
 */
export async function awaitRecord(
  { db, clock }: Pick<RecordParts, 'db' | 'clock'>,
  { account_id, id, sees }: { account_id: string; id: string; sees: (key_id: string) => Promise<boolean> },
  signal: AbortSignal,
): Promise<KeyedRecord | undefined> {
  const find = async () => {
    const record = await findRecord(db, account_id, id);
    return record && (await sees(record.key_id)) ? record : undefined;
  };
  const is_recent = id >= firstIdSince('req', clock.now() - id_slack_ms);
  for (const pause_ms of is_recent ? record_pauses_ms : []) {
    const record = await find();
    if (record || signal.aborted) return record;
    await sleep(pause_ms, undefined, { signal }).catch(() => undefined);
  }
  return find();
}

/** Most records are there within the first of them. */
const record_pauses_ms = [100, 200, 400, 800, 1_500];

/** A record with the key of its call. */
export type KeyedRecord = ChatRecord & { key_id: string };

async function selectRecord(db: Queryable, account_id: string, id: string): Promise<KeyedRecord | undefined> {
  const rows = await db.query<KeyedRecord>(
    `select key_id, ${columns} from chat_calls where account_id = $1 and id = $2`,
    [account_id, id],
  );
  return rows[0];
}

/** Returns SQL that selects the `key_id` of a call. */
export function keyOfCall(account: string, id: string): string {
  return `select key_id from chat_calls where account_id = ${account} and id = ${id}`;
}

/** A call as one line of a list, with the key that made it, and the last route that was tried. */
export type RecordLine = Omit<ChatRecord, 'attempts'> & { key_id: string; route: string | null };

const last_route = "attempts -> -1 ->> 'route'";

const line_columns = `key_id, ${last_route} as route, ${columns.replace('attempts, ', '')}`;

export type RecordFilter = KeysOfProjects &
  LabelFilter & {
    account_id: string;
    limit: number;
    /** Calls made before this one (further down the list). */
    after?: string;
    /** Calls made after this one (further up the list). */
    before?: string;
    id?: string;
    model?: string;
    key_id?: string;
    /** The last one that was tried. */
    route?: string;
    /** Only calls that ended well, or only the others. */
    ok?: boolean;
    created_after?: Date;
    created_before?: Date;
  };

/** Ids are made about when their call begins. */
const id_slack_ms = 3_600_000;

/** An account's calls, newest first: ids sort by time, so they are the cursor. */
export async function listRecords(db: Queryable, filter: RecordFilter): Promise<RecordPage> {
  if (labelsIn(filter).length > 0) return pageWith(await readByIndex(db, filter), filter);
  const { text, values } = filtersOf(filter);
  const rows = await db.query<RecordLine>(
    `select ${line_columns} from chat_calls where ${text}
      order by ${orderOf(filter)} limit $${values.length + 1}`,
    [...values, filter.limit + 1],
  );
  return pageWith(rows, filter);
}

const words_limit_ms = 3_000;

/**
 * The calls that have all of these words in their labels, their error or its message, as words or as their beginnings, newest first.
 * None if it is a text without words. Throws as a statement does that takes too long (isStopped).
 */
export async function searchRecords(db: Pick<Db, 'tx'>, filter: RecordFilter, words: string): Promise<RecordPage> {
  const rows = await db.tx(async (tx) => {
    await tx.query(`set local statement_timeout = ${words_limit_ms}`);
    return readByIndex(tx, filter, words);
  });
  return pageWith(rows, filter);
}

/** Calls that are looked at themselves before the index is read: what many calls have fills a page by then. */
const looked_at = 1_000;
const read_for_words = 200;

/** Words as the indexes have them: of every call, and of one that failed, those of the message of its error, too. */
const label_words = 'call_words(account_id, end_user, metadata, error_type, status)';
const all_words = `(${label_words} || message_words(account_id, error_message))`;

/** Calls with the labels of the filter, and with all words, one more than the limit. */
async function readByIndex(db: Queryable, filter: RecordFilter, words?: string): Promise<RecordLine[]> {
  const { text, values } = filtersOf(filter);
  const place = conditionsOf(placeOf(filter)).text; // with the first of the same values
  const order = orderOf(filter);
  const [limit_at, words_at, labels_at] = [1, 2, 3].map((more) => `$${values.length + more}`);
  const fits = `@@ (select call_query($1, ${words_at}, ${labels_at}))`;
  const search_values = [words?.replaceAll('\0', ' ') ?? null, labelsIn(filter)];
  const near_count = words === undefined ? Math.max(looked_at, 4 * filter.limit) : read_for_words;
  const near = await db.query<RecordLine>(
    `select ${line_columns} from (
       select * from chat_calls where ${place} order by ${order} limit ${near_count}) c
      where ${text}${words === undefined ? '' : ` and ${all_words} ${fits}`} order by ${order} limit ${limit_at}`,
    [...values, filter.limit + 1, ...(words === undefined ? [] : search_values)],
  );
  if (near.length > filter.limit) return near;
  const with_labels = `select * from chat_calls
    where (end_user is not null or metadata is not null or status >= 400) and ${label_words} ${fits} offset 0`;
  const failed = `select * from chat_calls where error_message is not null and ${all_words} ${fits} offset 0`;
  const rows =
    words === undefined
      ? with_labels
      : `select * from (${with_labels}) l where error_message is null union all select * from (${failed}) f`;
  return db.query<RecordLine>(
    `select ${line_columns} from (${rows}) c where ${text} order by ${order} limit ${limit_at}`,
    [...values, filter.limit + 1, ...search_values],
  );
}

function orderOf({ before }: RecordFilter): string {
  return `id ${before === undefined ? 'desc' : 'asc'}`;
}

function placeOf(filter: RecordFilter) {
  return [...rangeOf(filter), ['id < ?', filter.after], ['id > ?', filter.before], ['id = ?', filter.id]] as const;
}

function filtersOf(filter: RecordFilter): Conditions {
  const { model, ok, route } = filter;
  const { text, values } = conditionsOf([
    ...placeOf(filter),
    ['model = ?', model],
    [`${last_route} = ?`, route],
    ...keyConditions(filter),
    ...labelConditions(filter),
  ]);
  return { text: text + outcomeText(ok ?? outcomeOf(filter)), values };
}

/** Returns false for filters that only calls pass that failed: an index has those. */
function outcomeOf({ error_type, http_status = 0 }: LabelFilter): false | undefined {
  return error_type !== undefined || http_status >= 400 ? false : undefined;
}

export type RecordPage = { lines: RecordLine[]; has_more: boolean };

function pageWith(rows: RecordLine[], { before, limit }: RecordFilter): RecordPage {
  const lines = rows.slice(0, limit);
  return { lines: before === undefined ? lines : lines.toReversed(), has_more: rows.length > limit };
}

/** Calls of all accounts in a time, the newest first, one more than the limit: for operators. */
export async function listAllRecords(
  db: Queryable,
  { route, status, ...filter }: AllFilter & Pick<LabelFilter, 'http_status'>,
): Promise<(RecordLine & { account_id: string })[]> {
  if (status === 'queued' || status === 'running') return []; // a call that has not ended has no record
  const { text, values } = conditionsOf([
    ...timeOf(filter),
    ['model = ?', filter.model],
    ...labelConditions(filter),
    [`${last_route} = ?`, route],
  ]);
  const outcome = outcomeText(status ? status === 'succeeded' : outcomeOf(filter));
  return db.query(
    `select account_id, ${line_columns} from chat_calls where ${text}${outcome}
      order by created_at desc, id desc limit $${values.length + 1}`,
    [...values, filter.limit + 1],
  );
}

/** The calls of a time with the highest cost, first: among its newest `compared_max`. */
export async function highestCostRecords(
  db: Queryable,
  filter: Omit<RecordFilter, 'after' | 'before' | 'id' | 'route'>,
  compared_max: number,
): Promise<Omit<HighestCost, 'ids'> & { lines: RecordLine[] }> {
  const { account_id, model, ok, limit } = filter;
  const { key_id, ...of_any_key } = filter;
  // Costs are compared among calls that the reader sees: others say nothing, not even by their number.
  const range = [...rangeOf(filter), ...keyConditions(of_any_key)];
  const labels = labelConditions(filter);
  const { text, values } = conditionsOf([...range, ['model = ?', model], ['key_id = ?', key_id], ...labels]);
  const place = conditionsOf(range).text; // with the first of the same values
  const more = labels.some(([, value]) => value !== undefined) ? ', end_user, metadata, error_type' : '';
  const rows = `select account_id, id, model, key_id, status, cost, created_at${more} from chat_calls where ${place}`;
  const { ids, ...compared } = await highestCostIds(
    db,
    { rows, only: text + outcomeText(ok), values },
    { limit, compared_max },
  );
  const lines = await db.query<RecordLine>(
    `select ${line_columns} from chat_calls where account_id = $1 and id = any($2)
      order by cost desc, id desc`,
    [account_id, ids],
  );
  return { lines, ...compared };
}

function outcomeText(ok: boolean | undefined): string {
  return ok === undefined ? '' : ok ? ' and status < 400' : ' and status >= 400';
}

function rangeOf({
  account_id,
  created_after,
  created_before,
}: Pick<RecordFilter, 'account_id' | 'created_after' | 'created_before'>) {
  return [
    ['account_id = ?', account_id],
    ['id > ?', created_after && firstIdSince('req', Math.max(0, created_after.getTime() - id_slack_ms))],
    ['id < ?', created_before && firstIdSince('req', Math.max(0, created_before.getTime() + id_slack_ms))],
    [`${time_of_own} >= ?`, created_after],
    [`${time_of_own} < ?`, created_before],
  ] as const;
}
