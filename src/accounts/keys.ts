import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Db, Queryable } from '../db/database.ts';
import { newId, randomBase62, toBase62 } from '../lib/ids.ts';
import { openBudget } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** A key as it may be shown: the key itself is known only to its owner. */
export type ApiKey = {
  id: string;
  account_id: string;
  name: string;
  prefix: string;
  last_four: string;
  created_at: Date;
  deleted_at: Date | null;
};

const prefix = 'mdl_';

/**
 * `mdl_` + 30 random base62 characters (178 bits) + 6 characters of their CRC32, so that a scanner or
 * this server can tell a mistyped key without a look into the database.
 */
export function newKeyText(): string {
  const random = randomBase62(30);
  return prefix + random + checksum(random);
}

function checksum(random: string): string {
  return toBase62(crc32(random), 6);
}

/** True if `text` has the form and the checksum of a key; says nothing about its existence. */
export function isKeyText(text: string): boolean {
  return /^mdl_[0-9A-Za-z]{36}$/.test(text) && text.slice(34) === checksum(text.slice(4, 34));
}

/** What is stored of a key. A fast hash is right for 178 random bits: there is nothing to guess. */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Makes a key with its budget. `text` is returned here and never again. */
export async function createKey(
  db: Db,
  key: { account_id: string; name: string; limit_month: Money | null },
  now: Date,
): Promise<{ key: ApiKey; text: string }> {
  const text = newKeyText();
  const made = await db.tx(async (tx) => {
    const rows = await tx.query<ApiKey>(
      `insert into api_keys (id, account_id, name, hash, prefix, last_four, created_at)
       values ($1, $2, $3, $4, $5, $6, $7)
       returning id, account_id, name, prefix, last_four, created_at, deleted_at`,
      [newId('key', now.getTime()), key.account_id, key.name, hashKey(text), text.slice(0, 8), text.slice(-4), now],
    );
    const row = rows[0];
    if (!row) throw new Error('the key was not made');
    await openBudget(tx, { id: row.id, account_id: row.account_id, limit_month: key.limit_month }, now);
    return row;
  });
  return { key: made, text };
}

/** The account's keys, oldest first, deleted ones too. */
export async function listKeys(db: Queryable, account_id: string): Promise<ApiKey[]> {
  return db.query<ApiKey>(
    `select id, account_id, name, prefix, last_four, created_at, deleted_at
       from api_keys where account_id = $1 order by created_at, id`,
    [account_id],
  );
}

/** Deletes a key: from within a second on it opens nothing, on any node. False if it was not there. */
export async function deleteKey(db: Queryable, key_id: string, now: Date): Promise<boolean> {
  const rows = await db.query('update api_keys set deleted_at = $2 where id = $1 and deleted_at is null returning id', [
    key_id,
    now,
  ]);
  return rows.length === 1;
}
