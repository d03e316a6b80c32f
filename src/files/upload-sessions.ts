import type { Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { failpoint } from '../lib/failpoint.ts';
import { newId } from '../lib/ids.ts';
import { storageKey } from '../storage/key.ts';
import { removeAll } from '../storage/remove-all.ts';
import type { AccountLimits, FilesParts } from './files.ts';
import { contentOf } from './spool.ts';

/** A file that arrives in several requests, at any nodes: its parts lie in the storage, and its rows say which. */
export type UploadSession = {
  account_id: string;
  id: string;
  key_id: string;
  /** Chunks come in order; parts in any, which the last call names. */
  kind: 'chunks' | 'parts';
  filename: string;
  name: string | null;
  purpose: string;
  /** As announced. */
  size_bytes: bigint | null;
  /** Lifetime of the file. */
  keep_s: bigint;
  state: 'pending' | 'completed' | 'cancelled';
  received_bytes: bigint;
  file_id: string | null;
  created_at: Date;
  expires_at: Date;
};

export type SessionName = { account_id: string; id: string };

export type UploadPart = { id: string; size_bytes: bigint; storage_key: string };

export type NewSession = Pick<UploadSession, 'account_id' | 'key_id' | 'kind' | 'filename' | 'name' | 'purpose'> & {
  size_bytes: number | null;
  keep_s: number;
};

/** The time after which a session without new chunks ends. */
const session_ms = 3_600_000;

/** A session of chunks lives as long as they come, but no longer than a day. */
const session_ms_max = 86_400_000;

const columns = `account_id, id, key_id, kind, filename, name, purpose, size_bytes, keep_s, state, received_bytes, file_id,
  created_at, expires_at`;

/** Begins a session, or answers why not. */
export async function beginSession(
  db: Queryable,
  session: NewSession,
  limits: AccountLimits,
  now: Date,
): Promise<UploadSession | 'too_many' | 'too_much' | 'name_taken'> {
  const name = { account_id: session.account_id, id: newId('upload', now.getTime()) };
  const row = { ...session, ...name, created_at: now, expires_at: new Date(now.getTime() + session_ms) };
  const rows = await db.query<{ outcome: 'added' | 'too_many' | 'too_much' | 'name_taken' }>(
    'select insert_upload_session($1, $2, $3) as outcome',
    [recordText(row), limits.files_max, limits.bytes_max],
  );
  const outcome = rows[0]?.outcome;
  if (outcome !== undefined && outcome !== 'added') return outcome;
  const begun = await findUploadSession(db, name);
  if (!begun) throw new Error('a session is not there that has just begun');
  return begun;
}

/** Returns a session in any state, until some time after its end. */
export async function findUploadSession(
  db: Queryable,
  { account_id, id }: SessionName,
): Promise<UploadSession | undefined> {
  const rows = await db.query<UploadSession>(
    `select ${columns} from upload_sessions where account_id = $1 and id = $2`,
    [account_id, id],
  );
  return rows[0];
}

export type AddedPart =
  | { outcome: 'added'; id: string; received_bytes: bigint }
  | { outcome: 'misplaced' | 'too_long' | 'too_much' | 'too_many' | 'ended'; received_bytes: bigint };

type PartLimits = { session_bytes_max: number; account_bytes_max: number };

/** Bytes on their way into a session: a file at a path, without its first `skip_bytes`. */
export type NewPart = {
  path: string;
  skip_bytes: number;
  size_bytes: number;
  /** The place of a chunk in the file. */
  start_bytes: number | null;
};

/**
 * Stores a part, then adds it to its session, or answers why not. Every attempt has a storage key of its own; what is not
 * added is removed, or goes with the session.
 */
export async function addPart(
  { db, storage }: FilesParts,
  session: UploadSession,
  part: NewPart,
  limits: PartLimits,
  now: Date,
): Promise<AddedPart> {
  const { account_id, id: session_id } = session;
  const [begun] = await db.query<{ index: number }>(
    `update upload_sessions set parts_begun = parts_begun + 1
      where account_id = $1 and id = $2 and state = 'pending' and parts_begun < 10000 returning parts_begun - 1 as index`,
    [account_id, session_id],
  );
  if (!begun) {
    const current = await findUploadSession(db, session);
    const outcome = current?.state === 'pending' ? 'too_many' : 'ended';
    return { outcome, received_bytes: current?.received_bytes ?? 0n };
  }
  const { path, skip_bytes, size_bytes, start_bytes } = part;
  const id = newId('part', now.getTime());
  const storage_key = storageKey({ account_id, owner_id: session_id, index: begun.index, extension: 'bin' });
  const options = { content_type: 'application/octet-stream', size_limit_bytes: size_bytes };
  const { sha256 } = await storage.put(storage_key, contentOf(path, skip_bytes), options);
  await failpoint('upload.part');
  const row = { account_id, session_id, id, start_bytes, size_bytes, sha256, storage_key, created_at: now };
  const lasts_ms =
    session.kind === 'chunks'
      ? Math.min(now.getTime() + session_ms, session.created_at.getTime() + session_ms_max)
      : session.expires_at.getTime();
  const [added] = await db.query<{ outcome: AddedPart['outcome']; received_bytes: bigint }>(
    'select outcome, received_bytes from add_upload_part($1, $2, $3, $4)',
    [recordText(row), limits.session_bytes_max, limits.account_bytes_max, new Date(lasts_ms)],
  );
  if (!added) throw new Error('add_upload_part answered nothing');
  const { outcome, received_bytes } = added;
  if (outcome === 'added') return { outcome, id, received_bytes };
  await storage.remove([storage_key]).catch(() => undefined); // else the sweep does
  return { outcome, received_bytes };
}

/** The parts of a session, in the order in which they came. */
export function listParts(db: Queryable, { account_id, id }: SessionName): Promise<UploadPart[]> {
  return db.query<UploadPart>(
    `select id, size_bytes, storage_key from upload_parts where account_id = $1 and session_id = $2
      order by start_bytes, id`,
    [account_id, id],
  );
}

/** Cancels a session that is pending, and removes its parts. Returns it as it is then; undefined if there is none. */
export async function cancelSession(parts: FilesParts, name: SessionName): Promise<UploadSession | undefined> {
  const rows = await parts.db.query<UploadSession>(
    `update upload_sessions set state = 'cancelled' where account_id = $1 and id = $2 and state = 'pending'
      returning ${columns}`,
    [name.account_id, name.id],
  );
  if (!rows[0]) return findUploadSession(parts.db, name);
  await removeParts(parts, name);
  return rows[0];
}

/** Removes the stored parts of a session that has ended. What cannot be removed goes with the session. */
export async function removeParts({ storage }: FilesParts, { account_id, id }: SessionName): Promise<void> {
  await storage
    .list(account_id, id)
    .then((keys) => storage.remove(keys))
    .catch(() => undefined);
}

const batch_max = 50;

/** Longer than a part may be on its way into the storage. */
const grace_ms = 900_000;

/**
 * Removes sessions past their time with all that is stored of them. Answers how many. Goes on after those that cannot be
 * removed, and throws what was in the way when it is through.
 */
export async function removeOldUploads(parts: FilesParts, now: Date, stopped?: AbortSignal): Promise<number> {
  const { db, storage } = parts;
  const before = new Date(now.getTime() - grace_ms);
  const remove = async ({ account_id, id }: SessionName) => {
    await removeAll(storage, account_id, id);
    await db.query('delete from upload_sessions where account_id = $1 and id = $2', [account_id, id]);
  };
  let removed = 0;
  const errors: unknown[] = [];
  for (let after = ''; !stopped?.aborted;) {
    const rows = await db.query<SessionName>(
      `select account_id, id from upload_sessions where expires_at <= $1 and id > $2 order by id limit ${batch_max}`,
      [before, after],
    );
    const results = await Promise.allSettled(rows.map(remove));
    removed += results.filter((result) => result.status === 'fulfilled').length;
    errors.push(...results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])));
    after = rows.at(-1)?.id ?? '';
    if (rows.length < batch_max) break;
  }
  if (errors.length > 0) throw new AggregateError(errors.slice(0, 5), `${errors.length} uploads could not be removed`);
  return removed;
}
