import { isObject, type JsonObject } from '../catalog/model.ts';
import { readContent, storeContent, type StoredContent } from '../db/content.ts';
import type { GrowingTable } from '../db/tables.ts';
import { ApiError } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { objectOf } from '../styles/stream.ts';
import type { StoredParts } from './stored-responses.ts';

/** A conversation without its items. */
export type Conversation = {
  readonly id: string;
  readonly metadata: JsonObject;
  readonly created_at: Date;
};

/** The name of a conversation among all accounts. */
export type ConversationName = { readonly account_id: string; readonly id: string };

/** No account has more conversations. */
const conversations_max = 100_000;

const metadata_bytes_max = 65_536;

/**
 * For backups: those in a turn are as they were, so that the response of the turn agrees with them. The others are as they
 * are when the backup comes to them, with what was said since, but in no turn: nobody would end it. No other table counts
 * their items.
 */
export const growing_conversations: GrowingTable = {
  name: 'public.conversations',
  keys: ['id'],
  changing: '(select * from conversations where turn is not null)',
  is_later: 'r.created_at > m.at',
  values: { turn: 'null::text', turn_until: 'null::timestamptz' },
  bytes: 'r.size_bytes',
  parts: { name: 'public.conversation_items', keys: ['conversation_id'] },
};

/** A place in the database for the metadata of a conversation. */
export function placeOfConversation({ account_id, id }: ConversationName): string {
  return `conversations ${account_id} ${id}`;
}

/** Creates an empty conversation. Rejects with ApiError 429 where the account has as much as it may. */
export async function createConversation(
  parts: StoredParts,
  account_id: string,
  metadata: JsonObject,
  { now, expires_at, account_bytes_max }: { now: Date; expires_at: Date; account_bytes_max: number },
): Promise<Conversation> {
  await checkRoom(parts, account_id, account_bytes_max);
  const name = { account_id, id: newId('conv', now.getTime()) };
  const { key_id, content } = await encrypted(parts, name, metadata);
  await parts.db.query(
    `insert into conversations (account_id, id, key_id, content, size_bytes, created_at, used_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $6, $7)`,
    [account_id, name.id, key_id, content, content.length, now, expires_at],
  );
  return { id: name.id, metadata, created_at: now };
}

/** The oldest go once a minute. */
const retry_after_s = 60;

/** Rejects with ApiError 429 where conversations take all that an account may have: what is added here costs nothing. */
export async function checkRoom(
  { db }: Pick<StoredParts, 'db'>,
  account_id: string,
  account_bytes_max: number,
): Promise<void> {
  const [used] = await db.query<{ count: number; bytes: string }>(
    'select count(*)::int as count, coalesce(sum(size_bytes), 0)::text as bytes from conversations where account_id = $1',
    [account_id],
  );
  if (!used || (used.count < conversations_max && Number(used.bytes) <= account_bytes_max)) return;
  const message =
    'The account has as many conversations as are kept. Delete some, or wait until the oldest are removed.';
  throw new ApiError('rate_limit', message, { headers: { 'retry-after': String(retry_after_s) } });
}

function encrypted(
  { content_keys }: StoredParts,
  name: ConversationName,
  metadata: JsonObject,
): Promise<StoredContent> {
  return storeContent(content_keys, placeOfConversation(name), JSON.stringify(metadata));
}

/** A conversation of the account. Undefined if there is none, or it has expired. */
export async function findConversation(
  { db, content_keys }: StoredParts,
  name: ConversationName,
  now: Date,
): Promise<Conversation | undefined> {
  const [row] = await db.query<StoredContent & { created_at: Date }>(
    'select key_id, content, created_at from conversations where account_id = $1 and id = $2 and expires_at > $3',
    [name.account_id, name.id, now],
  );
  if (!row) return undefined;
  const json = await readContent(content_keys, placeOfConversation(name), row, metadata_bytes_max);
  const metadata = json === undefined ? {} : objectOf(json);
  return { id: name.id, metadata: isObject(metadata) ? metadata : {}, created_at: row.created_at };
}

/** Gives a conversation other metadata. Undefined if there is none. */
export async function changeMetadata(
  parts: StoredParts,
  name: ConversationName,
  metadata: JsonObject,
  { now, expires_at }: { now: Date; expires_at: Date },
): Promise<Conversation | undefined> {
  const { key_id, content } = await encrypted(parts, name, metadata);
  const [row] = await parts.db.query<{ created_at: Date }>(
    `update conversations
        set key_id = $4, content = $5, size_bytes = greatest(size_bytes - octet_length(content) + $7, 0), used_at = $3, expires_at = $6
      where account_id = $1 and id = $2 and expires_at > $3 returning created_at`,
    [name.account_id, name.id, now, key_id, content, expires_at, content.length],
  );
  return row && { id: name.id, metadata, created_at: row.created_at };
}

/** Deletes a conversation with its items; a turn that is in progress adds nothing any more. False if there is none. */
export async function deleteConversation(
  { db }: Pick<StoredParts, 'db'>,
  name: ConversationName,
  now: Date,
): Promise<boolean> {
  const rows = await db.query(
    'delete from conversations where account_id = $1 and id = $2 and expires_at > $3 returning id',
    [name.account_id, name.id, now],
  );
  return rows.length > 0;
}

/** Deletes all conversations of an account. Answers how many. */
export async function deleteConversations({ db }: Pick<StoredParts, 'db'>, account_id: string): Promise<number> {
  const rows = await db.query('delete from conversations where account_id = $1 returning id', [account_id]);
  return rows.length;
}
