import pg from 'pg';
import type { App } from '../app.ts';
import { makeBatcher } from '../db/batcher.ts';
import { isUnavailable, type Db, type Queryable } from '../db/database.ts';
import { whileAway } from '../db/while-away.ts';
import type { Money } from '../money/money.ts';
import type { PricedRequest } from './priced-request.ts';
import type { ChatAttempt, ChatOutcome } from './outcome.ts';
import { recordOf } from './record-row.ts';
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
  finish: string | null;
  attempts: ChatAttempt[];
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  cache_write_1h_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  counted_here: boolean;
  cost: Money;
  currency: string;
  first_content_ms: number | null;
  total_ms: number;
  created_at: Date;
};

export type Finished = {
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

const nothing = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

/**
 * Writes the record of a call, together with those of its neighbours. A failure is logged:
 * the money is right without it.
 */
export function writeRecord(app: App, priced: PricedRequest, finished: Finished): void {
  const row = { id: priced.request_id, account_id: priced.caller.account.id, text: rowOf(priced, finished) };
  const end = app.begin();
  const writing = finished.is_journaled
    ? writeDown(app, [row], true).catch(() => writerOf(app.db).write(row))
    : writerOf(app.db, (rows) => writeDown(app, rows, false)).write(row);
  writing.then(end, (error: unknown) => {
    end();
    const { request_id } = priced;
    if (!isThere(error)) app.log.error({ request_id, err: error }, 'the record of a chat call could not be written');
  });
}

type Row = { id: string; account_id: string; text: string };

async function writeDown(app: App, rows: readonly Row[], is_unsettled: boolean): Promise<void> {
  const entries = rows.map(({ id, account_id, text }) =>
    unrecordedEntry(app, { account_id, ref: id, is_unsettled, record: recordOf(text) }),
  );
  await app.journal.write(entries);
}

/** A repeat after a lost answer. To refuse it is an eighth cheaper for all others than `on conflict do nothing`. */
function isThere(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.constraint === 'chat_calls_pkey';
}

/**
 * The columns of chat_calls in their order, as PostgreSQL reads a row within an array: ten of the 33 µs that a record
 * cost it were for JSON. Nothing between two commas is null; ids and our own words need no quotes.
 */
function rowOf(priced: PricedRequest, finished: Finished): string {
  const { caller, request } = priced;
  const { outcome, charge } = finished;
  const usage = charge?.usage ?? nothing;
  const values = [
    caller.account.id,
    priced.request_id,
    caller.key.id,
    textInRow(priced.model.id),
    request.style.name,
    request.stream,
    outcome.error?.status ?? (outcome.is_gone ? gone_status : 200),
    outcome.error?.type,
    outcome.finish === undefined ? null : textInRow(storable(outcome.finish)),
    quoted(JSON.stringify(outcome.attempts.map(storableAttempt))),
    usage.input_tokens,
    usage.cached_input_tokens,
    usage.cache_write_tokens,
    usage.output_tokens,
    usage.reasoning_tokens,
    charge?.counted_here ?? false,
    finished.charged,
    caller.account.currency,
    outcome.first_content_ms,
    finished.total_ms,
    finished.created_at.toISOString(),
    finished.upstream_cost,
    usage.cache_write_1h_tokens,
  ];
  return quoted(`(${values.join(',')})`);
}

function textInRow(text: string): string {
  return /^[\w.:+/-]+$/.test(text) ? text : quoted(text);
}

/** As PostgreSQL reads a text in a row, and a row in an array: as JSON does, but with control characters as they are. */
function quoted(text: string): string {
  if (!/\p{Cc}/u.test(text)) return JSON.stringify(text);
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

/** An upstream's words: jsonb takes neither NUL nor half a surrogate pair, and nobody reads more. */
function storable(text: string): string {
  return text.slice(0, 600).toWellFormed().replaceAll('\u0000', '');
}

function storableAttempt(attempt: ChatAttempt): ChatAttempt {
  const { reason, upstream_id } = attempt;
  if (reason === undefined && upstream_id === undefined) return attempt;
  return {
    ...attempt,
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
  journal: ((rows: readonly Row[]) => Promise<void>) | undefined;
  /** Of the last one: records are written in the order in which their calls end. */
  newest: Promise<unknown>;
};

const writers = new WeakMap<Db, Writer>();

function writerOf(db: Db, journal?: Writer['journal']): Writer {
  const existing = writers.get(db);
  if (existing) {
    existing.journal ??= journal;
    return existing;
  }
  const batcher = makeBatcher<Row, undefined>({
    together: async (rows) => {
      const write = () => db.query(insert, [`{${rows.map(({ text }) => text).join(',')}}`]);
      // A database that is away keeps nobody: from the disk they are written when it is back.
      await write().catch(async (error: unknown) => {
        if (!isUnavailable(error)) throw error;
        await (writer.journal?.(rows) ?? Promise.reject(error)).catch(() => whileAway(write));
      });
      return rows.map(() => undefined);
    },
    linger_ms,
  });
  const write = (row: Row) => (writer.newest = batcher(row));
  const writer: Writer = { write, journal, newest: Promise.resolve() };
  writers.set(db, writer);
  return writer;
}

const columns = `id, model, style, stream, status, error_type, finish, attempts, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, first_content_ms, total_ms, created_at,
  coalesce(cache_write_1h_tokens, 0) as cache_write_1h_tokens`;

/** Flushed like the money: not to flush saved 6 % of a record's cost, and no call was seen to be faster for it. */
const insert = 'insert into chat_calls select r.* from unnest($1::chat_calls[]) as r';

/**
 * The record of an account's call; undefined if there is none, or the call has not ended. That of a call that has just
 * ended may still be on its way.
 */
export async function findRecord(db: Db, account_id: string, id: string): Promise<KeyedRecord | undefined> {
  const written = await selectRecord(db, account_id, id);
  if (written) return written;
  await writerOf(db).newest.catch(() => undefined);
  return selectRecord(db, account_id, id);
}

type KeyedRecord = ChatRecord & { key_id: string };

async function selectRecord(db: Queryable, account_id: string, id: string): Promise<KeyedRecord | undefined> {
  const rows = await db.query<KeyedRecord>(
    `select key_id, ${columns} from chat_calls where account_id = $1 and id = $2`,
    [account_id, id],
  );
  return rows[0];
}

/** A call as one line of a list, with the key that made it. */
export type RecordLine = Omit<ChatRecord, 'attempts'> & { key_id: string };

export type RecordFilter = {
  account_id: string;
  limit: number;
  /** Calls made before this one (further down the list). */
  after?: string;
  model?: string;
  key_id?: string;
  /** Only calls that ended well, or only the others. */
  ok?: boolean;
  created_after?: Date;
  created_before?: Date;
};

/** An account's calls, newest first: ids sort by time, so they are the cursor. */
export async function listRecords(
  db: Queryable,
  filter: RecordFilter,
): Promise<{ lines: RecordLine[]; has_more: boolean }> {
  const rows = await db.query<RecordLine>(
    `select key_id, ${columns.replace('attempts, ', '')} from chat_calls
      where account_id = $1 and ($2::text is null or id < $2)
        and ($3::text is null or model = $3) and ($4::text is null or key_id = $4)
        and ($5::boolean is null or (status < 400) = $5)
        and ($6::timestamptz is null or created_at >= $6) and ($7::timestamptz is null or created_at < $7)
      order by id desc limit $8`,
    [
      filter.account_id,
      filter.after ?? null,
      filter.model ?? null,
      filter.key_id ?? null,
      filter.ok ?? null,
      filter.created_after ?? null,
      filter.created_before ?? null,
      filter.limit + 1,
    ],
  );
  return { lines: rows.slice(0, filter.limit), has_more: rows.length > filter.limit };
}
