import { Semaphore } from '../concurrency/semaphore.ts';
import { readContent, storeContent, type ContentKeys, type StoredContent } from '../db/content.ts';
import type { Db, Queryable, Tx } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { randomBase62 } from '../lib/ids.ts';

/** Conversations of the playground that a person keeps on the server: content of theirs, which nobody else reads. */

/** The person whose conversations these are, in one account. */
export type PlaygroundOwner = { readonly account_id: string; readonly user_id: string };

/** A conversation of theirs, by the id that a browser chose. */
export type ConversationName = PlaygroundOwner & { readonly id: string };

/** For backups: they have few columns, and are all read at the moment, which tells whose conversations may be read later. */
export const growing_owners: GrowingTable = {
  name: 'public.playground_owners',
  keys: ['user_id'],
  changing: 'playground_owners',
  is_later: 'true',
};

/** For backups: each is as it is when the backup comes to it, with its contents. Read behind their owners. */
export const growing_playground: GrowingTable = {
  name: 'public.playground_conversations',
  keys: ['user_id', 'id'],
  is_later: `(r.created_at > m.at or not exists (select from read_playground_owners o
    where o.account_id = r.account_id and o.user_id = r.user_id offset 0))`,
  bytes: `(select coalesce(sum(size_bytes), 0) from playground_contents c
    where c.account_id = r.account_id and c.user_id = r.user_id and c.conversation_id = r.id)`,
  parts: { name: 'public.playground_contents', keys: ['user_id', 'conversation_id'] },
};

type FileName = ConversationName & { readonly file_id: string };

type Parts = { readonly db: Db; readonly content_keys: ContentKeys };

/** The bounds of one person in one account. Sizes are those before compression. */
export const playground_bounds = {
  conversations_max: 1_000,
  line_bytes_max: 60_000,
  turns_bytes_max: 2_000_000,
  files_bytes_max: 20_000_000,
  total_bytes_max: 500_000_000,
  tombstones_max: 10_000,
};

const tombstone_ms = 400 * 86_400_000;

/** Files that come before their conversation wait so long for it. */
const reserved_ms = 86_400_000;

/** A file that no turn names may belong to a save that is under way in another browser. */
const unused_file_age = '1 hour';

/** Base64 makes four characters of three bytes. */
const file_text_max = Math.ceil((playground_bounds.files_bytes_max * 4) / 3) + 4;

/** Tells whether a browser may have made this id of a conversation or a file. */
export function isPlaygroundId(text: string): boolean {
  return /^[0-9a-f]{24}$/.test(text);
}

export type OwnerState = { epoch: string; is_on: boolean; version: number };

/** Returns the choice of a person; undefined if they never made one, or removed everything. */
export async function findOwner(
  db: Queryable,
  { account_id, user_id }: PlaygroundOwner,
): Promise<OwnerState | undefined> {
  const rows = await db.query<OwnerState>(
    'select epoch, is_on, version from playground_owners where account_id = $1 and user_id = $2',
    [account_id, user_id],
  );
  return rows[0];
}

/** Switches the storing on, or off: what is there stays until it expires. */
export async function switchPlayground(
  db: Queryable,
  { account_id, user_id }: PlaygroundOwner,
  is_on: boolean,
  now: Date,
): Promise<void> {
  await db.query(
    `insert into playground_owners (account_id, user_id, epoch, is_on, created_at) values ($1, $2, $3, $4, $5)
     on conflict (account_id, user_id) do update set is_on = excluded.is_on`,
    [account_id, user_id, randomBase62(16), is_on, now],
  );
}

/** Removes everything of a person in an account, the choice too; without a person, that of everybody in it. */
export async function removePlayground(
  db: Queryable,
  { account_id, user_id }: { account_id: string; user_id?: string },
): Promise<void> {
  await db.query('delete from playground_owners where account_id = $1 and ($2::text is null or user_id = $2)', [
    account_id,
    user_id ?? null,
  ]);
}

/** A line of the list. `line`: JSON of the browser's; undefined for a tombstone, and where no secret of ours opens it. */
export type PlaygroundLine = { id: string; version: number; is_deleted: boolean; line: string | undefined };

const page_rows = 200;

/** Reads changes after a version in their order, tombstones among them. */
export async function listPlayground(
  { db, content_keys }: Parts,
  { account_id, user_id }: PlaygroundOwner,
  since: number,
  now: Date,
): Promise<{ lines: PlaygroundLine[]; has_more: boolean }> {
  type Row = { id: string; version: number; is_deleted: boolean; key_id: string | null; content: Buffer | null };
  const rows = await db.query<Row>(
    `select c.id, c.version, c.deleted_at is not null as is_deleted, l.key_id, l.content
       from playground_conversations c
       left join playground_contents l
         on l.account_id = c.account_id and l.user_id = c.user_id and l.id = c.id || ' line' and c.deleted_at is null
      where c.account_id = $1 and c.user_id = $2 and c.version > $3 and c.expires_at > $4
      order by c.version limit ${page_rows + 1}`,
    [account_id, user_id, since, now],
  );
  const lines: PlaygroundLine[] = [];
  for (const { id, version, is_deleted, key_id, content } of rows.slice(0, page_rows)) {
    const place = placeOf({ account_id, parent: user_id, id: contentId(id, 'line') });
    const line = content
      ? await opened(content_keys, place, { key_id, content }, playground_bounds.line_bytes_max)
      : undefined;
    lines.push({ id, version, is_deleted, line });
  }
  return { lines, has_more: rows.length > page_rows };
}

/** Reads the turns of a conversation, as JSON of the browser's. */
export async function readPlayground(
  { db, content_keys }: Parts,
  { account_id, user_id, id }: ConversationName,
  now: Date,
): Promise<{ version: number; turns: string } | 'absent' | 'deleted' | 'unreadable'> {
  type Row = { version: number; is_deleted: boolean; key_id: string | null; content: Buffer | null };
  const [row] = await db.query<Row>(
    `select c.version, c.deleted_at is not null as is_deleted, t.key_id, t.content
       from playground_conversations c
       left join playground_contents t
         on t.account_id = c.account_id and t.user_id = c.user_id and t.id = c.id || ' turns'
      where c.account_id = $1 and c.user_id = $2 and c.id = $3 and c.version > 0 and c.expires_at > $4`,
    [account_id, user_id, id, now],
  );
  if (!row) return 'absent';
  if (row.is_deleted) return 'deleted';
  const { version, key_id, content } = row;
  if (!content) return 'unreadable';
  const place = placeOf({ account_id, parent: user_id, id: contentId(id, 'turns') });
  const turns = await opened(content_keys, place, { key_id, content }, playground_bounds.turns_bytes_max);
  return turns === undefined ? 'unreadable' : { version, turns };
}

/** Reads a file of a conversation, as the text that a browser stored. */
export async function readPlaygroundFile(
  { db, content_keys }: Parts,
  { account_id, user_id, id, file_id }: FileName,
  now: Date,
): Promise<string | undefined> {
  const [row] = await db.query<StoredContent>(
    `select f.key_id, f.content from playground_contents f
       join playground_conversations c on c.account_id = f.account_id and c.user_id = f.user_id and c.id = f.conversation_id
      where f.account_id = $1 and f.user_id = $2 and f.id = $3 and c.expires_at > $4`,
    [account_id, user_id, contentId(id, file_id), now],
  );
  const place = placeOf({ account_id, parent: user_id, id: contentId(id, file_id) });
  return row && opened(content_keys, place, row, file_text_max);
}

/** Undefined also for what is damaged: the browser has its copy, and the sweep of keys removes it. */
async function opened(
  keys: ContentKeys,
  place: string,
  stored: StoredContent,
  bytes_max: number,
): Promise<string | undefined> {
  return readContent(keys, place, stored, bytes_max).catch(() => undefined);
}

/** A reason why nothing was stored. */
export type NotStored = 'off' | 'deleted' | 'too many' | 'no room' | 'busy';

/** Saves of one person wait for each other here, on no connection, before they would in the database. */
const saves = new Semaphore({ name: 'Conversations of the playground', bound: 4, key_bound: 1, queue_bound: 500 });
const turn_limit_ms = 20_000;

async function inTurn<T>({ account_id, user_id }: PlaygroundOwner, work: () => Promise<T>): Promise<T | 'busy'> {
  const permit = await saves.acquire(`${account_id} ${user_id}`, { timeout_ms: turn_limit_ms });
  if (!permit) return 'busy';
  try {
    return await work();
  } finally {
    permit.release();
  }
}

export type NewTurns = {
  /** The version that the browser knew; 0: none. */
  version: number;
  line: string;
  turns: string;
  /** Ids of the files that the turns name. */
  file_ids: readonly string[];
};

export type SaveResult = { version: number } | { newest: number } | { missing: readonly string[] } | NotStored;

/**
 * Saves a conversation, if it is still at the version that the browser knew. Locks the row of its owner. Returns the new
 * version, or `newest`: somebody else was faster; or `missing`: files that are named and not there.
 */
export async function savePlayground(
  { db, content_keys }: Parts,
  name: ConversationName,
  { version, line, turns, file_ids }: NewTurns,
  { now, keep_ms }: { now: Date; keep_ms: number },
): Promise<SaveResult> {
  const encrypted = await Promise.all([
    encryptPart(content_keys, name, 'line', line),
    encryptPart(content_keys, name, 'turns', turns),
  ]);
  const save = async (tx: Tx): Promise<SaveResult> => {
    const before = await lockConversation(tx, name, now);
    if (before === 'off' || before === 'deleted') return before;
    if (before && before.version > 0 && before.version !== version) return { newest: before.version };
    const missing = file_ids.length === 0 ? [] : await missingFiles(tx, name, file_ids);
    if (missing.length > 0) return { missing };
    if (!before && (await countConversations(tx, name)) >= playground_bounds.conversations_max) return 'too many';
    if (!(await hasRoom(tx, name, encrypted))) return 'no room';
    const next = await nextVersion(tx, name);
    await putConversation(tx, name, { version: next, now, expires_at: new Date(now.getTime() + keep_ms) });
    for (const each of encrypted) await putContent(tx, name, each, now);
    await tx.query(
      `delete from playground_contents
        where account_id = $1 and user_id = $2 and conversation_id = $3 and id <> all($4)
          and created_at < $5::timestamptz - interval '${unused_file_age}'`,
      [
        name.account_id,
        name.user_id,
        name.id,
        ['line', 'turns', ...file_ids].map((part) => contentId(name.id, part)),
        now,
      ],
    );
    return { version: next };
  };
  return inTurn(name, () => db.tx(save));
}

/** Stores a file, before the turns that name it. One that is there stays as it is: its id was chosen for this content. */
export async function savePlaygroundFile(
  { db, content_keys }: Parts,
  { file_id, ...name }: FileName,
  text: string,
  now: Date,
): Promise<'stored' | 'conversation full' | NotStored> {
  const encrypted = await encryptPart(content_keys, name, file_id, text);
  const save = async (tx: Tx): Promise<'stored' | 'conversation full' | NotStored> => {
    const before = await lockConversation(tx, name, now);
    if (before === 'off' || before === 'deleted') return before;
    if ((await missingFiles(tx, name, [file_id])).length === 0) return 'stored';
    if (!before && (await countConversations(tx, name)) >= playground_bounds.conversations_max) return 'too many';
    if ((await bytesOfFiles(tx, name)) + encrypted.size_bytes > playground_bounds.files_bytes_max)
      return 'conversation full';
    if (!(await hasRoom(tx, name, [encrypted]))) return 'no room';
    if (!before) {
      const expires_at = new Date(now.getTime() + reserved_ms);
      await putConversation(tx, name, { version: 0, now, expires_at });
    }
    await putContent(tx, name, encrypted, now);
    return 'stored';
  };
  return inTurn(name, () => db.tx(save));
}

/** Leaves a tombstone of a conversation. One that is not there needs none. */
export async function deletePlayground(
  db: Db,
  { account_id, user_id, id }: ConversationName,
  now: Date,
): Promise<'deleted' | 'busy'> {
  const name = { account_id, user_id, id };
  const leaveTombstone = async (tx: Tx): Promise<'deleted'> => {
    const before = await lockConversation(tx, name, now);
    if (before === undefined || before === 'off' || before === 'deleted') return 'deleted';
    await tx.query(
      `with emptied as (
         delete from playground_contents where account_id = $1 and user_id = $2 and conversation_id = $3)
       update playground_conversations set version = $4, updated_at = $5, deleted_at = $5, expires_at = $6
        where account_id = $1 and user_id = $2 and id = $3`,
      [account_id, user_id, id, await nextVersion(tx, name), now, new Date(now.getTime() + tombstone_ms)],
    );
    await tx.query(
      `delete from playground_conversations where (account_id, user_id, id) in (
         select account_id, user_id, id from playground_conversations
          where account_id = $1 and user_id = $2 and deleted_at is not null
          order by version desc offset ${playground_bounds.tombstones_max})`,
      [account_id, user_id],
    );
    return 'deleted';
  };
  return inTurn(name, () => db.tx(leaveTombstone));
}

type EncryptedPart = StoredContent & { id: string; size_bytes: number };

async function encryptPart(
  keys: ContentKeys,
  name: ConversationName,
  part: string,
  text: string,
): Promise<EncryptedPart> {
  const id = contentId(name.id, part);
  const stored = await storeContent(keys, placeOf({ account_id: name.account_id, parent: name.user_id, id }), text);
  const is_file = part !== 'line' && part !== 'turns';
  return { ...stored, id, size_bytes: is_file ? Math.floor((text.length * 3) / 4) : Buffer.byteLength(text) };
}

function contentId(conversation_id: string, part: string): string {
  return `${conversation_id} ${part}`;
}

/** All changes of one person wait here for each other, so that bounds and versions are exact. */
async function lockConversation(
  tx: Tx,
  { account_id, user_id, id }: ConversationName,
  now: Date,
): Promise<{ version: number } | 'off' | 'deleted' | undefined> {
  const owners = await tx.query(
    'select epoch from playground_owners where account_id = $1 and user_id = $2 and is_on for update',
    [account_id, user_id],
  );
  if (owners.length === 0) return 'off';
  const [row] = await tx.query<{ version: number; is_deleted: boolean; is_over: boolean }>(
    `select version, deleted_at is not null as is_deleted, expires_at <= $4 as is_over
       from playground_conversations where account_id = $1 and user_id = $2 and id = $3`,
    [account_id, user_id, id, now],
  );
  if (row?.is_over) {
    await tx.query('delete from playground_conversations where account_id = $1 and user_id = $2 and id = $3', [
      account_id,
      user_id,
      id,
    ]);
    return undefined;
  }
  return row?.is_deleted ? 'deleted' : row;
}

async function missingFiles(
  tx: Tx,
  { account_id, user_id, id }: ConversationName,
  file_ids: readonly string[],
): Promise<string[]> {
  const rows = await tx.query<{ file_id: string }>(
    `select f.file_id from unnest($4::text[]) as f (file_id)
      where not exists (select from playground_contents c
                         where c.account_id = $1 and c.user_id = $2 and c.id = $3 || ' ' || f.file_id)`,
    [account_id, user_id, id, file_ids],
  );
  return rows.map(({ file_id }) => file_id);
}

async function countConversations(tx: Tx, { account_id, user_id }: PlaygroundOwner): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::int as count from playground_conversations
      where account_id = $1 and user_id = $2 and deleted_at is null`,
    [account_id, user_id],
  );
  return row?.count ?? 0;
}

async function bytesOfFiles(tx: Tx, { account_id, user_id, id }: ConversationName): Promise<number> {
  const [row] = await tx.query<{ bytes: number }>(
    `select coalesce(sum(size_bytes), 0)::float8 as bytes from playground_contents
      where account_id = $1 and user_id = $2 and conversation_id = $3 and id <> all($4)`,
    [account_id, user_id, id, [contentId(id, 'line'), contentId(id, 'turns')]],
  );
  return row?.bytes ?? 0;
}

/** Tells whether these fit beside what else the person has. */
async function hasRoom(
  tx: Tx,
  { account_id, user_id }: PlaygroundOwner,
  contents: readonly EncryptedPart[],
): Promise<boolean> {
  const [row] = await tx.query<{ bytes: number }>(
    `select coalesce(sum(size_bytes), 0)::float8 as bytes from playground_contents
      where account_id = $1 and user_id = $2 and id <> all($3)`,
    [account_id, user_id, contents.map(({ id }) => id)],
  );
  const more = contents.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  return (row?.bytes ?? 0) + more <= playground_bounds.total_bytes_max;
}

async function nextVersion(tx: Tx, { account_id, user_id }: PlaygroundOwner): Promise<number> {
  const [row] = await tx.query<{ version: number }>(
    'update playground_owners set version = version + 1 where account_id = $1 and user_id = $2 returning version',
    [account_id, user_id],
  );
  return row?.version ?? 0;
}

async function putConversation(
  tx: Tx,
  { account_id, user_id, id }: ConversationName,
  { version, now, expires_at }: { version: number; now: Date; expires_at: Date },
): Promise<void> {
  await tx.query(
    `insert into playground_conversations (account_id, user_id, id, version, created_at, updated_at, expires_at)
     values ($1, $2, $3, $4, $5, $5, $6)
     on conflict (account_id, user_id, id) do update set version = $4, updated_at = $5, expires_at = $6`,
    [account_id, user_id, id, version, now, expires_at],
  );
}

async function putContent(tx: Tx, name: ConversationName, encrypted: EncryptedPart, now: Date): Promise<void> {
  const { account_id, user_id, id: conversation_id } = name;
  const { id, key_id, content, size_bytes } = encrypted;
  await tx.query(
    `insert into playground_contents (account_id, user_id, conversation_id, id, key_id, content, size_bytes, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (account_id, user_id, id) do update set key_id = $5, content = $6, size_bytes = $7`,
    [account_id, user_id, conversation_id, id, key_id, content, size_bytes, now],
  );
}

/** Each may have 20 MB of files. */
const removed_at_once = 20;

/** Removes conversations that have expired, or did not change for longer than the operator allows. Returns how many. */
export async function removeOldPlayground(
  db: Queryable,
  now: Date,
  keep_ms: number,
  stopped?: AbortSignal,
): Promise<number> {
  let removed = 0;
  for (const [condition, at] of [
    ['expires_at', now],
    ['deleted_at is null and updated_at', new Date(now.getTime() - keep_ms)],
  ] as const) {
    for (;;) {
      const rows = await db.query(
        `delete from playground_conversations where (account_id, user_id, id) in (
           select account_id, user_id, id from playground_conversations where ${condition} <= $1 limit ${removed_at_once})
         returning id`,
        [at],
      );
      removed += rows.length;
      if (rows.length < removed_at_once || stopped?.aborted) break;
    }
  }
  return removed;
}

/** `parent`: the person. */
function placeOf({ account_id, parent, id }: { account_id: string; parent: string; id: string }): string {
  return `playground_contents ${account_id} ${parent} ${id}`;
}

type EncryptedRow = StoredContent & { readonly account_id: string; readonly parent: string; readonly id: string };

/** For the change of the secret: where the content of a row lies, and how a damaged one is removed. */
export const encrypted_playground = {
  table: 'playground_contents',
  parent: 'user_id',
  placeOf,
  remove: async (db: Db, { account_id, parent, id, key_id }: EncryptedRow): Promise<boolean> => {
    const rows = await db.query(
      `delete from playground_contents
        where account_id = $1 and user_id = $2 and id = $3 and key_id is not distinct from $4 returning id`,
      [account_id, parent, id, key_id],
    );
    return rows.length > 0;
  },
};
