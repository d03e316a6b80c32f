import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { encryptContentAgain, type ContentKeys, type StoredContent } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { placeOf } from './stored-responses.ts';

type RemovalParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

const batch_max = 500;

/** Removes responses that have expired, and the oldest of accounts that have more than they may. Answers how many. */
export async function removeOldResponses(parts: RemovalParts, stopped?: AbortSignal): Promise<number> {
  const now = new Date(parts.clock.now());
  const { account_bytes_max } = parts.catalog.current.settings.responses;
  const expired = await inBatches(stopped, () =>
    parts.db.query(
      `delete from stored_responses where (account_id, id) in (
         select account_id, id from stored_responses where expires_at <= $1 order by expires_at limit ${batch_max})
       returning id`,
      [now],
    ),
  );
  const excess = await inBatches(stopped, () =>
    parts.db.query(
      `delete from stored_responses where (account_id, id) in (
         select account_id, id from (
           select account_id, id, sum(size_bytes) over (partition by account_id order by created_at desc, id desc) as newer_bytes
             from stored_responses
            where account_id in (select account_id from stored_responses group by account_id having sum(size_bytes) > $1)) r
          where newer_bytes > $1 limit ${batch_max})
       returning id`,
      [account_bytes_max],
    ),
  );
  return expired + excess;
}

async function inBatches(stopped: AbortSignal | undefined, removeBatch: () => Promise<unknown[]>): Promise<number> {
  for (let removed = 0; ;) {
    const { length } = await removeBatch();
    removed += length;
    if (length < batch_max || stopped?.aborted) return removed;
  }
}

const encrypt_batch_max = 100;

type EncryptParts = { readonly db: Db; readonly content_keys: ContentKeys; readonly log: Logger };

/**
 * Encrypts what lies there under another key, or under none, with the current one; without a secret, what can be read is
 * stored plainly again. Answers how many. A damaged one is removed: nobody can read it, and it would keep all the others
 * from their new key.
 */
export async function encryptAgain(parts: EncryptParts, stopped?: AbortSignal): Promise<number> {
  const { db, content_keys } = parts;
  const current = content_keys.current?.id ?? null;
  const readable = content_keys.readable.map(({ id }) => id).filter((id) => id !== current);
  for (let changed = 0; ;) {
    const rows = await db.query<EncryptedRow>(
      `select account_id, id, key_id, content from stored_responses
        where key_id = any($1) or ($2 and key_id is null) limit ${encrypt_batch_max}`,
      [readable, current !== null],
    );
    for (const row of rows) await encryptRow(parts, row);
    changed += rows.length;
    if (rows.length < encrypt_batch_max || stopped?.aborted) return changed;
  }
}

type EncryptedRow = StoredContent & { readonly account_id: string; readonly id: string };

async function encryptRow({ db, content_keys, log }: EncryptParts, row: EncryptedRow): Promise<void> {
  const { account_id, id, key_id } = row;
  let again: StoredContent | undefined;
  try {
    again = encryptContentAgain(content_keys, placeOf(account_id, id), row);
  } catch (error) {
    log.error({ error, account_id, response_id: id }, 'A stored response is damaged and was removed');
    await db.query(
      'delete from stored_responses where account_id = $1 and id = $2 and key_id is not distinct from $3',
      [account_id, id, key_id],
    );
    return;
  }
  if (!again) return;
  await db.query(
    `update stored_responses set key_id = $4, content = $5, size_bytes = $6
      where account_id = $1 and id = $2 and key_id is not distinct from $3`,
    [account_id, id, key_id, again.key_id, again.content, again.content.length],
  );
}
