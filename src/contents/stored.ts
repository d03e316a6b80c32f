import type { ContentRules } from '../accounts/content-rules.ts';
import { lockContentRules } from '../accounts/keys.ts';
import { isObject, type JsonObject } from '../catalog/model.ts';
import { readContent, type ContentKeys, type StoredContent } from '../db/content.ts';
import { conditionsOf } from '../db/conditions.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import { objectOf } from '../styles/stream.ts';
import type { LoggedMessage } from './answer.ts';
import type { RedactionCounts } from './redaction.ts';

/** The content of a call as it is stored. */
export type CallContent = {
  model: string;
  style: string;
  /** The body of the request, in the call's style. */
  request: JsonObject;
  /** One, or several where the request asked for several. */
  answers: LoggedMessage[];
  /** Something was too long to be stored whole. */
  is_cut: boolean;
  redacted: RedactionCounts;
};

export type NewContent = StoredContent & {
  account_id: string;
  id: string;
  api_key_id: string;
  created_at: Date;
  expires_at: Date;
};

/** For backups: the content of a call is written after the entry that settles it. */
export const growing_contents: GrowingTable = {
  name: 'public.chat_contents',
  keys: ['id'],
  is_later: hasLaterEntry('r.id', ['close', 'late']),
  bytes: 'r.size_bytes',
};

export function placeOfCallContent({ account_id, id }: { account_id: string; id: string }): string {
  return `chat_contents ${account_id} ${id}`;
}

/** Stores contents whose keys still have rules for that. Returns how many. */
export async function insertContents(db: Db, contents: readonly NewContent[]): Promise<number> {
  return db.tx(async (tx) => {
    // A key that is switched off deletes its contents behind that: none may come later.
    const logging = await lockContentRules(tx, [...new Set(contents.map(({ api_key_id }) => api_key_id))]);
    const rows = contents.filter(({ api_key_id }) => logging.has(api_key_id));
    if (rows.length === 0) return 0;
    const column = <Name extends keyof NewContent>(name: Name) => rows.map((row) => row[name]);
    await tx.query(
      `insert into chat_contents (account_id, id, api_key_id, key_id, content, created_at, expires_at, size_bytes)
       select r.*, octet_length(r.content)
         from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[], $7::timestamptz[])
              as r (account_id, id, api_key_id, key_id, content, created_at, expires_at)
       on conflict do nothing`,
      [
        column('account_id'),
        column('id'),
        column('api_key_id'),
        column('key_id'),
        column('content'),
        column('created_at'),
        column('expires_at'),
      ],
    );
    return rows.length;
  });
}

export type ContentParts = { readonly db: Queryable; readonly content_keys: ContentKeys };

/** The content of a call, with its times. `content` is undefined where no secret of ours opens it. */
export type FoundContent = {
  id: string;
  api_key_id: string;
  created_at: Date;
  expires_at: Date;
  content: CallContent | undefined;
};

type Row = StoredContent & { account_id: string; id: string; api_key_id: string; created_at: Date; expires_at: Date };

const columns = 'account_id, id, api_key_id, key_id, content, created_at, expires_at';

/** Far more than a content may have. */
const content_bytes_max = 67_108_864;

/** Finds the content of an account's call; undefined if there is none. */
export async function findContent(
  parts: ContentParts,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
): Promise<FoundContent | undefined> {
  const [row] = await parts.db.query<Row>(
    `select ${columns} from chat_contents where account_id = $1 and id = $2 and expires_at > $3`,
    [account_id, id, now],
  );
  return row && readRow(parts, row);
}

/** Tells whether there is content of a call, without reading it. */
export async function hasContent(
  db: Queryable,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
): Promise<boolean> {
  const rows = await db.query('select id from chat_contents where account_id = $1 and id = $2 and expires_at > $3', [
    account_id,
    id,
    now,
  ]);
  return rows.length > 0;
}

export type ContentFilter = {
  account_id: string;
  api_key_id?: string | undefined;
  ids?: readonly string[] | undefined;
};

const page_rows = 50;

/** Reads the contents of an account, oldest call first; what expires meanwhile is left out. */
export async function* eachContent(
  parts: ContentParts,
  { account_id, api_key_id, ids }: ContentFilter,
  now: Date,
): AsyncGenerator<FoundContent> {
  for (let after = ''; ;) {
    const { text, values } = conditionsOf([
      ['account_id = ?', account_id],
      ['expires_at > ?', now],
      ['id > ?', after],
      ['api_key_id = ?', api_key_id],
      ['id = any(?)', ids],
    ]);
    const rows = await parts.db.query<Row>(
      `select ${columns} from chat_contents where ${text} order by id limit ${page_rows}`,
      values,
    );
    for (const row of rows) yield await readRow(parts, row);
    const last = rows.at(-1);
    if (!last || rows.length < page_rows) return;
    after = last.id;
  }
}

async function readRow({ content_keys }: ContentParts, row: Row): Promise<FoundContent> {
  const { id, api_key_id, created_at, expires_at } = row;
  const json = await readContent(content_keys, placeOfCallContent(row), row, content_bytes_max);
  return { id, api_key_id, created_at, expires_at, content: json === undefined ? undefined : readCallContent(json) };
}

function readCallContent(json: string): CallContent | undefined {
  const value: unknown = objectOf(json);
  return isCallContent(value) ? value : undefined;
}

/** Content is written here alone: its version is that of what is looked at. */
function isCallContent(value: unknown): value is CallContent {
  return isObject(value) && isObject(value['request']) && Array.isArray(value['answers']);
}

const batch_max = 500;

type Removed = { account_id: string; api_key_id?: string };

/** Deletes the contents of an account, or of one key of it, in batches. Returns how many. */
export async function deleteContents(db: Queryable, { account_id, api_key_id }: Removed): Promise<number> {
  return inBatches(undefined, () =>
    db.query(
      `delete from chat_contents where (account_id, id) in (
         select account_id, id from chat_contents
          where account_id = $1 and ($2::text is null or api_key_id = $2) limit ${batch_max})
       returning id`,
      [account_id, api_key_id ?? null],
    ),
  );
}

/** Deletes the content of one call. False if there was none. */
export async function deleteContent(db: Queryable, account_id: string, id: string): Promise<boolean> {
  const rows = await db.query('delete from chat_contents where account_id = $1 and id = $2 returning id', [
    account_id,
    id,
  ]);
  return rows.length > 0;
}

/** Lets the contents of a key expire no later than its rules say now. */
export async function shortenContents(
  db: Queryable,
  { account_id, api_key_id }: Required<Removed>,
  { keep_days }: Pick<ContentRules, 'keep_days'>,
): Promise<void> {
  await db.query(
    `update chat_contents set expires_at = created_at + $3 * interval '1 day'
      where account_id = $1 and api_key_id = $2 and expires_at > created_at + $3 * interval '1 day'`,
    [account_id, api_key_id, keep_days],
  );
}

/** The most that the operator allows: for how long, and how much of an account. */
export type ContentBounds = { keep_ms: number; account_bytes_max: number };

/**
 * Removes contents that have expired or are older than the operator allows, and the oldest of accounts that have more
 * than they may. Returns how many.
 */
export async function removeOldContents(
  db: Queryable,
  now: Date,
  { keep_ms, account_bytes_max }: ContentBounds,
  stopped?: AbortSignal,
): Promise<number> {
  const removeUntil = (column: 'expires_at' | 'created_at', at: Date) =>
    inBatches(stopped, () =>
      db.query(
        `delete from chat_contents where (account_id, id) in (
           select account_id, id from chat_contents where ${column} <= $1 order by ${column} limit ${batch_max})
         returning id`,
        [at],
      ),
    );
  const expired = await removeUntil('expires_at', now);
  const old = await removeUntil('created_at', new Date(now.getTime() - keep_ms));
  const beyond = await inBatches(stopped, () =>
    db.query(
      `delete from chat_contents where (account_id, id) in (
         select account_id, id from (
           select account_id, id, sum(size_bytes) over (partition by account_id order by id desc) as newer_bytes
             from chat_contents
            where account_id in (select account_id from chat_contents group by account_id having sum(size_bytes) > $1)) r
          where newer_bytes > $1 limit ${batch_max})
       returning id`,
      [account_bytes_max],
    ),
  );
  return expired + old + beyond;
}

async function inBatches(stopped: AbortSignal | undefined, removeBatch: () => Promise<unknown[]>): Promise<number> {
  for (let removed = 0; ;) {
    const { length } = await removeBatch();
    removed += length;
    if (length < batch_max || stopped?.aborted) return removed;
  }
}

type EncryptedRow = StoredContent & { readonly account_id: string; readonly id: string };

/** For the change of the secret: where the content of a row lies, and how a damaged one is removed. */
export const encrypted_contents = {
  table: 'chat_contents',
  parent: 'account_id',
  sizes: ', size_bytes = octet_length($6)',
  placeOf: placeOfCallContent,
  remove: async (db: Db, { account_id, id }: EncryptedRow) => deleteContent(db, account_id, id),
};
