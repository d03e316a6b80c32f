import type { Db, Queryable } from '../db/database.ts';
import type { TestCall } from './run.ts';

/** A file of a call, without its bytes; `text`: of a short one that is text. */
export type StoredFile = { extension: string; content_type: string; size_bytes: number; text?: string };

/** The outcome of a call, for the operator who made it. */
export type StoredResult =
  | ({ failure: null; files: StoredFile[] } & Pick<
      TestCall,
      'outcome' | 'took_ms' | 'steps' | 'message' | 'text' | 'cost' | 'upstream_cost'
    >)
  | { failure: string };

/** A real call of a route, which all nodes see. */
export type StoredTestCall = {
  id: string;
  route: string;
  currency: string;
  begun_at: Date;
  over_at: Date;
  result: StoredResult | null;
};

/** Older ones are removed. */
const test_calls_max = 10;
const kept_ms = 60 * 60_000;

const text_bytes_max = 20_000;
const files_bytes_max = 64_000_000;

/** Begins a call. Returns false if one of this route is in progress: a second click must not cost twice. */
export async function beginTestCall(
  db: Db,
  { id, route, currency, begun_at, over_at }: Omit<StoredTestCall, 'result'>,
): Promise<boolean> {
  await db.query('delete from test_calls where route = $1 and result is null and over_at < $2', [route, begun_at]);
  const rows = await db.query(
    `insert into test_calls (id, route, currency, begun_at, over_at) values ($1, $2, $3, $4, $5)
     on conflict (route) where result is null do nothing returning id`,
    [id, route, currency, begun_at, over_at],
  );
  return rows.length > 0;
}

/** Stores what became of a call, with its files unless they are too large to show. */
export async function endTestCall(db: Db, id: string, ended: TestCall | { failure: string }): Promise<void> {
  if ('failure' in ended) return storeResult(db, id, ended);
  const { outcome, took_ms, steps, text, cost, upstream_cost } = ended;
  const is_too_large = ended.files.reduce((sum, { size_bytes }) => sum + size_bytes, 0) > files_bytes_max;
  const message = is_too_large ? 'It produced files that are too large to show here.' : ended.message;
  const files = is_too_large ? [] : ended.files;
  for (const [index, { bytes }] of files.entries())
    await db.query('insert into test_call_files (test_call_id, index, bytes) values ($1, $2, $3)', [id, index, bytes]);
  const facts = files.map(({ bytes, extension, content_type, size_bytes }) => {
    const is_short_text = content_type.startsWith('text/') && size_bytes <= text_bytes_max;
    return { extension, content_type, size_bytes, ...(is_short_text && { text: bytes.toString() }) };
  });
  const shown = { outcome, took_ms, steps, text, cost, upstream_cost, message, files: facts };
  await storeResult(db, id, { failure: null, ...shown });
}

async function storeResult(db: Db, id: string, result: StoredResult): Promise<void> {
  // JSON of PostgreSQL has no NUL; a text of a model may.
  const json = JSON.stringify(result).replaceAll(String.raw`\u0000`, String.raw`\ufffd`);
  await db.query('update test_calls set result = $2 where id = $1', [id, json]);
}

/** Returns a call that was made lately. */
export async function findTestCall(db: Queryable, id: string): Promise<StoredTestCall | undefined> {
  const rows = await db.query<StoredTestCall>(
    'select id, route, currency, begun_at, over_at, result from test_calls where id = $1',
    [id],
  );
  return rows[0];
}

/** Returns the bytes of a file that a call made. */
export async function readTestCallFile(db: Queryable, id: string, index: number): Promise<Buffer | undefined> {
  const rows = await db.query<{ bytes: Buffer }>(
    'select bytes from test_call_files where test_call_id = $1 and index = $2',
    [id, index],
  );
  return rows[0]?.bytes;
}

/** Removes the calls that nobody looks at any more. */
export async function removeOldTestCalls(db: Queryable, now: Date): Promise<void> {
  await db.query(
    `delete from test_calls where (result is not null or over_at < $1) and (begun_at < $2
       or id not in (select id from test_calls order by begun_at desc limit $3))`,
    [now, new Date(now.getTime() - kept_ms), test_calls_max],
  );
}
