import { conditionsOf } from '../db/conditions.ts';
import type { Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { failpoint } from '../lib/failpoint.ts';
import { newId } from '../lib/ids.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import { storageKey } from '../storage/key.ts';
import type { Document } from '../storage/document.ts';
import type { Probe } from '../storage/probe-result.ts';
import { removeAll } from '../storage/remove-all.ts';
import type { Storage } from '../storage/storage.ts';
import { contentOf } from './spool.ts';

/** Files of callers. Of another account, expired or half stored, a file is as unknown as one that never was. */
export type CallerFile = {
  account_id: string;
  id: string;
  /** The key that made it. */
  key_id: string;
  /** The task of whose input it is a part; null for what was uploaded. */
  task_id: string | null;
  filename: string;
  /** The caller's own choice in Gemini's style, without `files/`. */
  name: string | null;
  purpose: string;
  storage_key: string;
  kind: 'image' | 'video' | 'audio' | 'document';
  content_type: string;
  size_bytes: bigint;
  width: number | null;
  height: number | null;
  duration_ms: number | null;
  /** The hash of the bytes, in hex; null of files that are older than this column. */
  sha256: string | null;
  created_at: Date;
  expires_at: Date;
};

const columns = `account_id, id, key_id, task_id, filename, name, purpose, storage_key, kind, content_type, size_bytes, width, height,
  duration_ms, sha256, created_at, expires_at`;

/** For backups: the storage `key` of every file of a caller's that is whole, and the table behind it. */
export const stored_uploads = {
  table: 'public.files',
  keys: 'select storage_key as key from files where ready',
};

/** The parts of the service that this module needs. */
export type FilesParts = { db: Queryable; storage: Storage };

const no_measures: Pick<Probe, 'width' | 'height' | 'duration'> = {};

export type NewFile = {
  /** The id of a file that may be made again: the same one then. */
  id?: string;
  account_id: string;
  key_id: string;
  /** Null: uploaded, and counted in the account's limits. */
  task_id: string | null;
  filename: string;
  purpose: string;
  /** Measurements of the bytes. */
  probe: Probe | Document;
  /** The bytes themselves, or the path at which they lie. */
  content: Buffer | string;
  expires_at: Date;
  /** The caller's own choice, which no other file of the account may have. */
  name?: string | undefined;
  /** The session in which it arrived, which ends with it. */
  session_id?: string;
};

/** Reasons why a file is not stored: the limits of the account, its name, or the end of its session. */
export type FileProblem = 'too_many' | 'too_much' | 'name_taken' | 'ended';

/** Of one account's uploads together. */
export type AccountLimits = { files_max: number; bytes_max: number };

/**
 * Keeps a file, or answers why not. The row is there before the bytes are, so that whatever happens in between, the
 * sweep finds what is left.
 */
export async function keepFile(
  { db, storage }: FilesParts,
  file: NewFile,
  limits: AccountLimits,
  now: Date,
): Promise<CallerFile | FileProblem> {
  const id = file.id ?? newId('file', now.getTime());
  const { account_id, probe, content, name = null, session_id = null } = file;
  const storage_key = storageKey({ account_id, owner_id: id, index: 0, extension: probe.extension });
  const added = await addRow(db, { ...file, id, storage_key }, limits, now);
  if (added !== 'added') return added;
  try {
    const { content_type, size_bytes } = probe;
    const options = { content_type, size_limit_bytes: size_bytes };
    const { sha256 } = await storage.put(storage_key, contentOf(content), options);
    await failpoint('upload.stored');
    const outcomes = await db.query<{ outcome: 'ready' | 'removed' | 'ended' | 'name_taken' }>(
      'select ready_file($1, $2, $3, $4, $5, $6) as outcome',
      [account_id, id, sha256, name, session_id, now],
    );
    const outcome = outcomes[0]?.outcome;
    if (outcome === 'ended' || outcome === 'name_taken') {
      await removeFile({ db, storage }, { account_id, id });
      return outcome;
    }
    const stored = outcome === 'ready' ? await findFile(db, { account_id, id }, now) : undefined;
    if (stored) return stored;
    throw new Error('a file was removed while it was stored');
  } catch (error) {
    await removeUnready({ db, storage }, { account_id, id }).catch(() => undefined); // else the sweep does
    throw error;
  }
}

/** Removes a file, unless somebody else has made it meanwhile. */
async function removeUnready(parts: FilesParts, { account_id, id }: FileName): Promise<void> {
  const rows = await parts.db.query('select id from files where account_id = $1 and id = $2 and not ready', [
    account_id,
    id,
  ]);
  if (rows.length > 0) await removeFile(parts, { account_id, id });
}

type Row = NewFile & { id: string; storage_key: string };

async function addRow(
  db: Queryable,
  file: Row,
  limits: AccountLimits,
  now: Date,
): Promise<'added' | 'too_many' | 'too_much'> {
  const { account_id, id, key_id, task_id, filename, purpose, storage_key, expires_at, probe, session_id } = file;
  const { type: kind, content_type, size_bytes } = probe;
  const { width, height, duration } = probe.type === 'document' ? no_measures : probe;
  const row = {
    account_id,
    id,
    key_id,
    task_id,
    filename,
    purpose,
    storage_key,
    created_at: now,
    expires_at,
    kind,
    content_type,
    size_bytes,
    width,
    height,
    duration_ms: duration === undefined ? null : Math.round(duration * 1e3),
    session_id,
  };
  const rows = await db.query<{ outcome: 'added' | 'too_many' | 'too_much' }>(
    'select insert_file($1, $2, $3) as outcome',
    [recordText(row), limits.files_max, limits.bytes_max],
  );
  const outcome = rows[0]?.outcome;
  if (outcome === undefined) throw new Error('insert_file answered nothing');
  return outcome;
}

type FileName = { account_id: string; id: string };

/** A file that its account can use now. */
export async function findFile(
  db: Queryable,
  { account_id, id }: FileName,
  now: Date,
): Promise<CallerFile | undefined> {
  const rows = await db.query<CallerFile>(
    `select ${columns} from files where account_id = $1 and id = $2 and ready and expires_at > $3`,
    [account_id, id, now],
  );
  return rows[0];
}

/** A file that its account has given this name. */
export async function findFileByName(
  db: Queryable,
  account_id: string,
  name: string,
  now: Date,
): Promise<CallerFile | undefined> {
  const rows = await db.query<CallerFile>(
    `select ${columns} from files where account_id = $1 and name = $2 and ready and expires_at > $3`,
    [account_id, name, now],
  );
  return rows[0];
}

export type FileFilter = KeysOfProjects & {
  account_id: string;
  limit: number;
  order: 'asc' | 'desc';
  /** Further down the list than this one. */
  after: string | undefined;
  purpose: string | undefined;
};

/** Uploads of an account; ids sort by time, so they are the cursor. */
export async function listFiles(
  db: Queryable,
  filter: FileFilter,
  now: Date,
): Promise<{ files: CallerFile[]; has_more: boolean }> {
  const { account_id, limit, order, after, purpose } = filter;
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    ['expires_at > ?', now],
    [`id ${order === 'asc' ? '>' : '<'} ?`, after],
    ['purpose = ?', purpose],
    ...keyConditions(filter),
  ]);
  const rows = await db.query<CallerFile>(
    `select ${columns} from files where ${text} and task_id is null and ready
      order by id ${order} limit $${values.length + 1}`,
    [...values, limit + 1],
  );
  return { files: rows.slice(0, limit), has_more: rows.length > limit };
}

/** Takes a file away, for its owner at once. False if there is none. */
export async function deleteFile(parts: FilesParts, file: FileName, now: Date): Promise<boolean> {
  const rows = await parts.db.query(
    `update files set expires_at = $3
      where account_id = $1 and id = $2 and ready and expires_at > $3 and task_id is null returning id`,
    [file.account_id, file.id, now],
  );
  if (rows.length === 0) return false;
  await removeFile(parts, file);
  return true;
}

/** Removes what the input of a task brought along. */
export async function removeTaskInputs(parts: FilesParts, account_id: string, task_id: string): Promise<void> {
  const rows = await parts.db.query<FileName>(
    'select account_id, id from files where account_id = $1 and task_id = $2',
    [account_id, task_id],
  );
  for (const row of rows) await removeFile(parts, row);
}

/** The bytes first: the row is what finds them again after a crash. */
async function removeFile({ db, storage }: FilesParts, { account_id, id }: FileName): Promise<void> {
  await removeAll(storage, account_id, id);
  await db.query('delete from files where account_id = $1 and id = $2', [account_id, id]);
}

const batch_max = 50;

/** Longer than a file may take from its row to its bytes. */
const unready_ms = 3_600_000;

/**
 * Removes files past their time, and what was never stored as a whole. Answers how many. Goes on after those that
 * cannot be removed, and throws what was in the way when it is through.
 */
export async function removeExpiredFiles(parts: FilesParts, now: Date, stopped?: AbortSignal): Promise<number> {
  let removed = 0;
  const errors: unknown[] = [];
  // Whoever stores one of these again meanwhile is told that it is removed, before its bytes go: see ready_file.
  await parts.db.query(
    'update files set expires_at = created_at where not ready and created_at < $1 and expires_at > created_at',
    [new Date(now.getTime() - unready_ms)],
  );
  for (let after = ''; !stopped?.aborted;) {
    const rows = await parts.db.query<FileName>(
      `select account_id, id from files where expires_at <= $1 and id > $2 order by id limit ${batch_max}`,
      [now, after],
    );
    const results = await Promise.allSettled(rows.map((row) => removeFile(parts, row)));
    removed += results.filter((result) => result.status === 'fulfilled').length;
    errors.push(...results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])));
    after = rows.at(-1)?.id ?? '';
    if (rows.length < batch_max) break;
  }
  if (errors.length > 0) throw new AggregateError(errors.slice(0, 5), `${errors.length} files could not be removed`);
  return removed;
}
