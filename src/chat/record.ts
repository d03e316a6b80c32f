import type { App } from '../app.ts';
import { makeBatcher, type Batcher } from '../db/batcher.ts';
import type { Db, Queryable } from '../db/database.ts';
import { whileAway } from '../db/while-away.ts';
import type { Money } from '../money/money.ts';
import type { CallStyle } from '../styles/conversation.ts';
import type { CallOrder } from './order.ts';
import type { ChatAttempt, ChatOutcome } from './outcome.ts';
import type { Charge } from './settle.ts';

/** What is kept of a call: all but what was said. */
export type ChatRecord = {
  id: string;
  model: string;
  style: CallStyle;
  stream: boolean;
  status: number;
  error_type: string | null;
  finish: string | null;
  attempts: ChatAttempt[];
  input_tokens: number;
  cached_input_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  counted_here: boolean;
  cost: Money;
  currency: string;
  first_content_ms: number | null;
  total_ms: number;
  created_at: Date;
};

type Row = Omit<ChatRecord, 'cost' | 'attempts'> & {
  account_id: string;
  key_id: string;
  attempts: string;
  cost: string;
  upstream_cost: string | null;
};

export type Finished = {
  outcome: ChatOutcome;
  charge: Charge | undefined;
  charged: Money;
  upstream_cost: Money | null;
  created_at: Date;
  total_ms: number;
};

/** The status of a caller who did not wait for the answer (nginx's, for the record only). */
const gone_status = 499;

const nothing = {
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

/**
 * Writes the record of a call, together with those of its neighbours. A failure is logged:
 * the money is right without it.
 */
export async function writeRecord(app: App, order: CallOrder, finished: Finished): Promise<void> {
  const { outcome, charge, charged, upstream_cost, created_at, total_ms } = finished;
  const row: Row = {
    account_id: order.caller.account.id,
    id: order.request_id,
    key_id: order.caller.key.id,
    model: order.model.id,
    style: order.ask.style,
    stream: order.ask.stream,
    status: outcome.error?.status ?? (outcome.is_gone ? gone_status : 200),
    error_type: outcome.error?.type ?? null,
    finish: outcome.finish === undefined ? null : storable(outcome.finish),
    attempts: JSON.stringify(outcome.attempts.map(storableAttempt)),
    ...(charge?.usage ?? nothing),
    counted_here: charge?.counted_here ?? false,
    cost: String(charged),
    upstream_cost: upstream_cost === null ? null : String(upstream_cost),
    currency: order.caller.account.currency,
    first_content_ms: outcome.first_content_ms ?? null,
    total_ms,
    created_at,
  };
  const writing = whileAway(() => batcherOf(app.db)(row)).catch((error: unknown) => {
    app.log.error({ request_id: row.id, err: error }, 'the record of a chat call could not be written');
  }); // a repeat changes nothing
  being_written.set(row.id, writing);
  await writing;
  being_written.delete(row.id);
}

/** Of calls that have ended: whoever asks for one has to wait for its record. */
const being_written = new Map<string, Promise<void>>();

/** An upstream's words: jsonb takes neither NUL nor half a surrogate pair, and nobody reads more. */
function storable(text: string): string {
  return text.slice(0, 600).toWellFormed().replaceAll('\u0000', '');
}

function storableAttempt(attempt: ChatAttempt): ChatAttempt {
  return attempt.reason === undefined ? attempt : { ...attempt, reason: storable(attempt.reason) };
}

/**
 * How long a record waits for others. One statement for each call, of which each flushes the log, made the holds of
 * the next call wait: a fourth of what a call costs the database.
 */
const linger_ms = 20;

const batchers = new WeakMap<Db, Batcher<Row, undefined>>();

function batcherOf(db: Db): Batcher<Row, undefined> {
  const known = batchers.get(db);
  if (known) return known;
  const batcher = makeBatcher<Row, undefined>({
    together: async (rows) => {
      await db.query(insert, [JSON.stringify(rows)]);
      return rows.map(() => undefined);
    },
    linger_ms,
  });
  batchers.set(db, batcher);
  return batcher;
}

const columns = `id, model, style, stream, status, error_type, finish, attempts, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, first_content_ms, total_ms, created_at`;

/** A repeat after a lost answer changes nothing. */
const insert = `insert into chat_calls (account_id, key_id, upstream_cost, ${columns})
  select account_id, key_id, upstream_cost, id, model, style, stream, status, error_type, finish, attempts::jsonb, input_tokens,
      cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency,
      first_content_ms, total_ms, created_at
    from jsonb_to_recordset($1) as r (account_id text, key_id text, upstream_cost bigint, id text, model text, style text, stream boolean,
      status int, error_type text, finish text, attempts text, input_tokens int, cached_input_tokens int,
      cache_write_tokens int, output_tokens int, reasoning_tokens int, counted_here boolean, cost bigint, currency text,
      first_content_ms int, total_ms int, created_at timestamptz)
  on conflict do nothing`;

/** The record of an account's call; undefined if there is none, or the call has not ended. */
export async function findRecord(
  db: Queryable,
  account_id: string,
  id: string,
): Promise<(ChatRecord & { key_id: string }) | undefined> {
  await being_written.get(id);
  const rows = await db.query<ChatRecord & { key_id: string }>(
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
