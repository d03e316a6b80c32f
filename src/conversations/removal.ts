import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { encryptContentAgain, type ContentKeys, type StoredContent } from '../db/content.ts';
import { patient, type Db } from '../db/database.ts';
import { encrypted_playground } from '../contents/playground.ts';
import { encrypted_contents } from '../contents/stored.ts';
import type { Clock } from '../lib/clock.ts';
import { placeOfContent } from './background.ts';
import { placeOfConversation } from './conversations.ts';
import { placeOfItem, removeItem } from './items.ts';
import { placeOf } from './stored-responses.ts';

type RemovalParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/**
 * Removes responses and conversations that have expired, and the oldest of accounts that have more than they may.
 * Answers how many.
 */
export async function removeOldResponses(parts: RemovalParts, stopped?: AbortSignal): Promise<number> {
  const now = new Date(parts.clock.now());
  const { account_bytes_max } = parts.catalog.current.settings.responses;
  let removed = 0;
  for (const { table, at, batch } of bounded) {
    removed += await inBatches(stopped, batch, () =>
      parts.db.query(
        `delete from ${table} where (account_id, id) in (
           select account_id, id from ${table} where expires_at <= $1 order by expires_at limit ${batch})
         returning id`,
        [now],
      ),
    );
    removed += await inBatches(stopped, batch, () =>
      parts.db.query(
        `delete from ${table} where (account_id, id) in (
           select account_id, id from (
             select account_id, id, sum(size_bytes) over (partition by account_id order by ${at} desc, id desc) as newer_bytes
               from ${table}
              where account_id in (select account_id from ${table} group by account_id having sum(size_bytes) > $1)) r
            where newer_bytes > $1 limit ${batch})
         returning id`,
        [account_bytes_max],
      ),
    );
  }
  return removed + (await removeEnded(parts, now, stopped));
}

/** Readers of a stream come back within an hour, or have the whole answer. */
const events_kept_ms = 3_600_000;

/** Removes responses in the background that have expired, and events of those that ended long ago but the last ones. */
async function removeEnded(parts: RemovalParts, now: Date, stopped: AbortSignal | undefined): Promise<number> {
  const batch = 500;
  await inBatches(stopped, batch, () =>
    parts.db.query(
      `delete from background_contents where (account_id, response_id, id) in (
         select c.account_id, c.response_id, c.id from background_contents c
           join background_responses b on b.account_id = c.account_id and b.id = c.response_id
          where b.done_at < $1 and c.last_event is not null and exists (
            select from background_contents later where later.account_id = c.account_id
               and later.response_id = c.response_id and later.last_event > c.last_event)
          limit ${batch})
       returning id`,
      [new Date(now.getTime() - events_kept_ms)],
    ),
  );
  return inBatches(stopped, batch, () =>
    parts.db.query(
      `delete from background_responses where (account_id, id) in (
         select account_id, id from background_responses where done_at is not null and expires_at <= $1 limit ${batch})
       returning id`,
      [now],
    ),
  );
}

/** Tables of which an account may have so many bytes each, the time by which the oldest go, and how many go at once. */
const bounded = [
  { table: 'stored_responses', at: 'created_at', batch: 500 },
  { table: 'conversations', at: 'used_at', batch: 20 }, // each with its items, up to 200,000 rows
] as const;

async function inBatches(
  stopped: AbortSignal | undefined,
  batch: number,
  removeBatch: () => Promise<unknown[]>,
): Promise<number> {
  for (let removed = 0; ;) {
    const { length } = await removeBatch();
    removed += length;
    if (length < batch || stopped?.aborted) return removed;
  }
}

const encrypt_batch_max = 100;

/** Bytes of content that are read at once; a row that is larger is read alone. */
const encrypt_bytes_max = 4_000_000;

type EncryptParts = { readonly db: Db; readonly content_keys: ContentKeys; readonly log: Logger };

/**
 * Encrypts what lies there under another key, or under none, with the current one; without a secret, what can be read is
 * stored plainly again. Answers how many. What is damaged is removed: nobody can read it, and it would keep all the others
 * from their new key.
 */
export async function encryptAgain({ db: impatient, ...others }: EncryptParts, stopped?: AbortSignal): Promise<number> {
  const db = patient(impatient); // a row of tens of megabytes takes seconds
  const parts = { db, ...others };
  const { content_keys } = parts;
  const current = content_keys.current?.id ?? null;
  const readable = content_keys.readable.map(({ id }) => id).filter((id) => id !== current);
  let changed = 0;
  for (const content of contents) {
    for (;;) {
      const rows = await readBatch(db, content, readable, current);
      let changed_here = 0;
      for (const row of rows) if (await encryptRow(parts, content, row)) changed_here += 1;
      changed += changed_here;
      if (stopped?.aborted) return changed;
      if (changed_here === 0) break; // what another node changes meanwhile is its own
    }
  }
  return changed;
}

/** Reads rows with another key, and no more of them than fit; a window function does not read the contents themselves. */
function readBatch(
  db: Db,
  { table, parent }: Content,
  readable: readonly string[],
  current: string | null,
): Promise<EncryptedRow[]> {
  return db.query<EncryptedRow>(
    `select account_id, parent, id, key_id, content from (
       select *, coalesce(sum(octet_length(content)) over (rows between unbounded preceding and current row), 0) as bytes,
              row_number() over () as position
         from (select account_id, ${parent} as parent, id, key_id, content from ${table}
                where key_id = any($1) or ($2 and key_id is null) limit ${encrypt_batch_max}) batch) measured
      where bytes <= $3 or position = 1`,
    [readable, current !== null, encrypt_bytes_max],
  );
}

type EncryptedRow = StoredContent & { readonly account_id: string; readonly parent: string; readonly id: string };

/** A table with content: where a row lies, and what becomes of one that is damaged. `parent`: the column of what it belongs to. */
type Content = {
  table: string;
  parent: string;
  /** Columns that say how large it is. */
  sizes?: string;
  placeOf(row: EncryptedRow): string;
  /** Returns false if it was not there any more. */
  remove(db: Db, row: EncryptedRow): Promise<boolean>;
};

function removeFrom(table: string): Content['remove'] {
  return async (db, { account_id, id, key_id }) => {
    const removed = await db.query(
      `delete from ${table} where account_id = $1 and id = $2 and key_id is not distinct from $3 returning id`,
      [account_id, id, key_id],
    );
    return removed.length > 0;
  };
}

/** All of them. */
export const contents: readonly Content[] = [
  encrypted_contents,
  encrypted_playground,
  {
    table: 'stored_responses',
    parent: 'account_id',
    sizes: ', size_bytes = octet_length($6)',
    placeOf: ({ account_id, id }) => placeOf(account_id, id),
    remove: removeFrom('stored_responses'),
  },
  {
    table: 'conversations',
    parent: 'account_id',
    placeOf: placeOfConversation,
    remove: removeFrom('conversations'),
  },
  {
    table: 'conversation_items',
    parent: 'conversation_id',
    placeOf: ({ account_id, parent, id }) => placeOfItem({ account_id, id: parent }, id),
    remove: async (db, { account_id, parent, id }) =>
      (await removeItem({ db }, { account_id, id: parent }, id, null)) === 'removed',
  },
  {
    table: 'background_contents',
    parent: 'response_id',
    placeOf: ({ account_id, parent, id }) => placeOfContent({ account_id, id: parent }, id),
    remove: async (db, { account_id, parent, id, key_id }) => {
      const removed = await db.query(
        `delete from background_contents
          where account_id = $1 and response_id = $2 and id = $3 and key_id is not distinct from $4 returning id`,
        [account_id, parent, id, key_id],
      );
      return removed.length > 0;
    },
  },
];

/** Returns false if nothing was changed: another node was faster. */
async function encryptRow({ db, content_keys, log }: EncryptParts, kind: Content, row: EncryptedRow): Promise<boolean> {
  const { account_id, parent, id, key_id } = row;
  let again: StoredContent | undefined;
  try {
    again = encryptContentAgain(content_keys, kind.placeOf(row), row);
  } catch (error) {
    log.error({ error, account_id, table: kind.table, id }, 'Stored content is damaged and was removed');
    return kind.remove(db, row);
  }
  if (!again) return false;
  const updated = await db.query(
    `update ${kind.table} set key_id = $5, content = $6::bytea${kind.sizes ?? ''}
      where account_id = $1 and ${kind.parent} = $2 and id = $3 and key_id is not distinct from $4 returning id`,
    [account_id, parent, id, key_id, again.key_id, again.content],
  );
  return updated.length > 0;
}
