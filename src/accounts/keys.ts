import { crc32 } from 'node:zlib';
import type { Db, Queryable, Tx } from '../db/database.ts';
import { newId, randomBase62, toBase62 } from '../lib/ids.ts';
import { sha256 } from '../lib/sha256.ts';
import { openBudget, shareBudget } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';
import { no_rules, rule_names, type KeyRules } from './key-rules.ts';

/** A key as it may be shown: the key itself is known only to its owner. */
export type ApiKey = {
  id: string;
  account_id: string;
  name: string;
  kind: KeyKind;
  prefix: string;
  last_four: string;
  created_at: Date;
  /** In the future: it was rotated, and works until then. */
  deleted_at: Date | null;
  /** To about a minute; null: not since its uses are noted. */
  last_used_at: Date | null;
  /** Null: from the beginning. */
  use_noted_since: Date | null;
  /** It calls models, and reads what keys of its project made: nothing else of the account. */
  is_limited: boolean;
  /** The project for which limited members use the playground by it; null: it is no such key. */
  playground_project: string | null;
} & KeyRules;

/** The user of a key: programs, or the dashboard's playground, which has one key per account and one per project of limited members. */
export type KeyKind = 'program' | 'playground';

export type KeyState = 'active' | 'ending' | 'expired' | 'deleted';

export function keyState(
  { deleted_at, expires_at }: Pick<ApiKey, 'deleted_at' | 'expires_at'>,
  now_ms: number,
): KeyState {
  if (deleted_at !== null && deleted_at.getTime() <= now_ms) return 'deleted';
  if (expires_at !== null && expires_at.getTime() <= now_ms) return 'expired';
  return deleted_at === null ? 'active' : 'ending';
}

const unused_after_ms = 90 * 86_400_000;

/** Returns whether nobody has used a key for 90 days, in which its uses were noted. */
export function isUnused(
  { created_at, last_used_at, use_noted_since }: Pick<ApiKey, 'created_at' | 'last_used_at' | 'use_noted_since'>,
  now: Date,
): boolean {
  const since = last_used_at ?? use_noted_since ?? created_at;
  return now.getTime() - since.getTime() >= unused_after_ms;
}

/** Columns of an `ApiKey`. */
export const key_columns =
  "id, account_id, name, case when playground_project is null then kind else 'playground' end as kind, prefix, last_four, " +
  'created_at, deleted_at, expires_at, scopes, addresses, models,' +
  'requests_per_minute, last_used_at, use_noted_since, log_content, is_limited, playground_project';

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

/** Returns true if `text` has the form and the checksum of a key; says nothing about its existence. */
export function isKeyText(text: string): boolean {
  return /^mdl_[0-9A-Za-z]{36}$/.test(text) && text.slice(34) === checksum(text.slice(4, 34));
}

/** Returns the stored form of a key. A fast hash is enough for 178 random bits: they cannot be guessed. */
export function hashKey(text: string): Buffer {
  return sha256(text);
}

/**
 * `project_id`: null or absent for the default one. `member_id`: the person who made it. `playground_project`: the playground
 * of limited members uses it for this project.
 */
export type NewKey = {
  account_id: string;
  name: string;
  limit_month: Money | null;
  rules?: KeyRules;
  project_id?: string | null;
  member_id?: string | null;
  is_limited?: boolean;
  playground_project?: string | null;
};

/** `shares`: the key whose budget it uses too. `member_id`: the person who rotated that one. */
type RotatedKey = Required<Pick<NewKey, 'account_id' | 'name' | 'rules' | 'member_id' | 'is_limited'>> & {
  shares: string;
};

/** Makes a key with its budget and rules. `text` is returned here and never again. */
export async function createKey(db: Db, key: NewKey, now: Date): Promise<{ key: ApiKey; text: string }> {
  return db.tx((tx) => insertKey(tx, key, now));
}

/** Makes a key as `createKey` does, in a transaction with more. */
export async function insertKey(
  tx: Queryable,
  key: NewKey | RotatedKey,
  now: Date,
): Promise<{ key: ApiKey; text: string }> {
  const text = newKeyText();
  const row = await insertRow(tx, key, 'program', text, now);
  if (!row) throw new Error('the key was not made');
  return { key: row, text };
}

/** Returns undefined if the account has its one key of the playground, or that of a project. */
async function insertRow(
  tx: Queryable,
  key: NewKey | RotatedKey,
  kind: KeyKind,
  text: string,
  now: Date,
): Promise<ApiKey | undefined> {
  const { account_id, name, rules = no_rules, is_limited = false } = key;
  const playground_project = 'shares' in key ? null : (key.playground_project ?? null);
  const id = newId('key', now.getTime());
  const shown = [text.slice(0, 8), text.slice(-4)];
  const rows = await tx.query<ApiKey>(
    `insert into api_keys (id, account_id, name, kind, hash, prefix, last_four, created_at, expires_at, scopes, addresses, models,
       requests_per_minute, log_content, is_limited, playground_project)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
     on conflict do nothing returning ${key_columns}`,
    [
      id,
      account_id,
      name,
      kind,
      hashKey(text),
      ...shown,
      now,
      rules.expires_at,
      rules.scopes,
      rules.addresses,
      rules.models,
      rules.requests_per_minute,
      jsonOf(rules.log_content),
      is_limited,
      playground_project,
    ],
  );
  const row = rows[0];
  if (!row) return undefined;
  if ('shares' in key) {
    const budget_id = await shareBudget(
      tx,
      { id: row.id, account_id, shares: key.shares, member_id: key.member_id },
      now,
    );
    await tx.query('update api_keys set budget_id = $2 where id = $1', [row.id, budget_id]);
  } else {
    const { limit_month, project_id = null, member_id = null } = key;
    await openBudget(tx, { id: row.id, account_id, limit_month, project_id, member_id }, now);
  }
  return row;
}

/** The key by which the playground calls models: that of the account, or for limited members that of a project. */
export async function findPlaygroundKey(
  db: Queryable,
  account_id: string,
  project_id: string | null,
): Promise<ApiKey | undefined> {
  const rows = await db.query<ApiKey>(
    project_id === null
      ? `select ${key_columns} from api_keys where account_id = $1 and kind = 'playground' and deleted_at is null`
      : `select ${key_columns} from api_keys where account_id = $1 and playground_project = $2 and deleted_at is null`,
    project_id === null ? [account_id] : [account_id, project_id],
  );
  return rows[0];
}

/** Makes the key of the playground, whose text nobody is ever told; finds it, if another has made it meanwhile. */
export async function openPlaygroundKey(tx: Tx, key: NewKey, now: Date): Promise<ApiKey> {
  const { account_id, playground_project = null } = key;
  const kind = playground_project === null ? 'playground' : 'program'; // an account has one row of the former kind
  const inserted = await insertRow(tx, key, kind, newKeyText(), now);
  const own = inserted ?? (await findPlaygroundKey(tx, account_id, playground_project));
  if (!own) throw new Error('the key of the playground is neither made nor there');
  return own;
}

/** A key of this account, or, without one, of any; deleted ones too. */
export async function findKey(db: Queryable, id: string, account_id?: string): Promise<ApiKey | undefined> {
  const rows = await db.query<ApiKey>(
    `select ${key_columns} from api_keys where id = $1 and ($2::text is null or account_id = $2)`,
    [id, account_id ?? null],
  );
  return rows[0];
}

export async function renameKey(db: Queryable, id: string, name: string): Promise<void> {
  await db.query('update api_keys set name = $2 where id = $1', [id, name]);
}

/**
 * Gives a key new rules; within a second they hold on every node. Only those of `names` are written: somebody else may
 * change another one at the same moment.
 */
export async function changeKeyRules(
  db: Queryable,
  id: string,
  rules: KeyRules,
  names: readonly (keyof KeyRules)[] = rule_names,
): Promise<void> {
  if (names.length === 0) return;
  const columns = names.map((name, index) => `${name} = $${index + 2}`);
  const values = names.map((name) => (name === 'log_content' ? jsonOf(rules.log_content) : rules[name]));
  await db.query(`update api_keys set ${columns.join(', ')} where id = $1`, [id, ...values]);
}

function jsonOf(rules: KeyRules['log_content']): string | null {
  return rules && JSON.stringify(rules);
}

/** Returns those of these keys that store contents, and keeps them from being switched off until the transaction ends. */
export async function lockContentRules(tx: Tx, ids: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(
    'select id from api_keys where id = any($1) and log_content is not null order by id for share',
    [ids],
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Makes a key with the same name, budget and rules, and ends the old one: now, or once `overlap_ms` have passed, so
 * that programs can change over one by one. What both spend and hold counts against one limit. `limits`: the new key is
 * limited, whatever the old one was. `member_id`: the person who rotates it. Undefined if there is none that is active.
 */
export async function rotateKey(
  db: Db,
  key_id: string,
  { overlap_ms, limits, member_id = null }: { overlap_ms: number; limits: boolean; member_id?: string | null },
  now: Date,
): Promise<{ key: ApiKey; text: string; old: ApiKey } | undefined> {
  return db.tx(async (tx) => {
    // By the database's clock, as whoever authenticates asks it.
    const ended = await tx.query<ApiKey>(
      `update api_keys set deleted_at = now() + $2 * interval '1 ms' where id = $1 and deleted_at is null
         and (expires_at is null or expires_at > now())
       returning ${key_columns}`,
      [key_id, overlap_ms],
    );
    const old = ended[0];
    if (!old) return undefined;
    const { account_id, name } = old;
    return {
      ...(await insertKey(
        tx,
        { account_id, name, shares: key_id, rules: old, is_limited: old.is_limited || limits, member_id },
        now,
      )),
      old,
    };
  });
}

/** Tells whether a key, or one that shares its budget and is not deleted, is limited to its project. */
export async function hasLimited(db: Queryable, key_id: string): Promise<boolean> {
  const rows = await db.query(
    `select from api_keys k join api_keys o on coalesce(o.budget_id, o.id) = coalesce(k.budget_id, k.id)
      where k.id = $1 and o.account_id = k.account_id and o.is_limited and (o.deleted_at is null or o.deleted_at > now()) limit 1`,
    [key_id],
  );
  return rows.length > 0;
}

/**
 * Deletes a key: from within a second on it opens nothing, on any node, however wrong a node's clock is. False
 * if it was not there.
 */
export async function deleteKey(db: Queryable, key_id: string, now: Date): Promise<boolean> {
  const rows = await db.query(
    `update api_keys set deleted_at = least($2, now()) where id = $1 and (deleted_at is null or deleted_at > now())
     returning id`,
    [key_id, now],
  );
  return rows.length === 1;
}

/** Returns the names of working keys by the key that has their budget: of rotated ones, the newest counts. */
export async function keyNamesOf(
  db: Queryable,
  budget_ids: readonly string[],
  now: Date,
): Promise<Map<string, string>> {
  const rows = await db.query<{ budget_id: string; name: string }>(
    `select coalesce(budget_id, id) as budget_id, name from api_keys
      where (id = any($1) or budget_id = any($1)) and (deleted_at is null or deleted_at > $2)
        and (expires_at is null or expires_at > $2) order by created_at, id`,
    [budget_ids, now],
  );
  return new Map(rows.map(({ budget_id, name }) => [budget_id, name]));
}

/** Deletes the key that has this text, for who holds it. Undefined if there is none that programs use. */
export async function revokeKey(db: Queryable, text: string, now: Date): Promise<ApiKey | undefined> {
  if (!isKeyText(text)) return undefined;
  const rows = await db.query<ApiKey>(
    `update api_keys set deleted_at = least($2, now())
      where hash = $1 and kind = 'program' and (deleted_at is null or deleted_at > now()) returning ${key_columns}`,
    [hashKey(text), now],
  );
  return rows[0];
}
