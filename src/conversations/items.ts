import type { JsonObject } from '../catalog/model.ts';
import { readContent, storeContent, type StoredContent } from '../db/content.ts';
import { oneRow } from '../db/one-row.ts';
import { newId } from '../lib/ids.ts';
import { objectOf } from '../styles/stream.ts';
import type { ConversationName } from './conversations.ts';
import { stored_bytes_max, type StoredParts, type TakeMemory } from './stored-responses.ts';

/** An item as it was given, under the id that its conversation has for it. */
export type ConversationItem = { readonly id: string; readonly item: JsonObject };

/** No conversation has more items, but for those of the last answer. */
export const conversation_items_max = 10_000;

/** The longest conversation, as bytes of JSON: as long as one that is sent whole. */
export const conversation_bytes_max = 32_000_000;

/** Beside its JSON, an item takes about as much. */
const item_bytes = 500;

const tries_max = 3;
const id_length_max = 128;

/** A place in the database for an item. */
export function placeOfItem({ account_id, id }: ConversationName, item_id: string): string {
  return `conversation_items ${account_id} ${id} ${item_id}`;
}

export type AppendOutcome = 'appended' | 'absent' | 'locked' | 'lost' | 'full';

/**
 * Adds items to the end of a conversation; `turn` is the caller's own, which ends with that. Those without an id, or with one that the
 * conversation has already, get one. Answers the items, or why none was added.
 */
export async function appendItems(
  parts: StoredParts,
  name: ConversationName,
  items: readonly JsonObject[],
  { now, expires_at, turn }: { now: Date; expires_at: Date; turn?: string },
): Promise<ConversationItem[] | Exclude<AppendOutcome, 'appended'>> {
  let taken: ReadonlySet<string> = new Set();
  for (let tries = 1; ; tries++) {
    const named = nameItems(items, taken, now);
    const outcome = await append(parts, name, named, { now, expires_at, turn });
    if (outcome === 'appended') return named;
    if (outcome !== 'taken') return outcome;
    if (tries === tries_max) throw new Error('the ids of new items are taken again and again');
    taken = await takenIds(parts, name, named);
  }
}

function nameItems(items: readonly JsonObject[], taken: ReadonlySet<string>, now: Date): ConversationItem[] {
  const used = new Set(taken);
  return items.map((item) => {
    const { id: own, type = 'message' } = item;
    const is_usable = typeof own === 'string' && own !== '' && own.length <= id_length_max && !own.includes('\0');
    const id = is_usable && !used.has(own) ? own : newId(type === 'message' ? 'msg' : 'item', now.getTime());
    used.add(id);
    return { id, item };
  });
}

async function takenIds(
  { db }: StoredParts,
  { account_id, id }: ConversationName,
  items: readonly ConversationItem[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ id: string }>(
    'select id from conversation_items where account_id = $1 and conversation_id = $2 and id = any($3)',
    [account_id, id, items.map((item) => item.id)],
  );
  return new Set(rows.map((row) => row.id));
}

async function append(
  { db, content_keys }: StoredParts,
  name: ConversationName,
  items: readonly ConversationItem[],
  { now, expires_at, turn }: { now: Date; expires_at: Date; turn: string | undefined },
): Promise<AppendOutcome | 'taken'> {
  const jsons = items.map(({ item }) => JSON.stringify(item));
  const contents: StoredContent[] = [];
  for (const [index, { id }] of items.entries())
    contents.push(await storeContent(content_keys, placeOfItem(name, id), jsons[index] ?? ''));
  const rows = await db.query<{ outcome: AppendOutcome | 'taken' }>(
    'select append_items($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as outcome',
    [
      name.account_id,
      name.id,
      turn ?? null,
      now,
      expires_at,
      conversation_items_max,
      conversation_bytes_max,
      items.map(({ id }) => id),
      contents.map(({ key_id }) => key_id),
      contents.map(({ content }) => content),
      jsons.map((json) => Buffer.byteLength(json)),
    ],
  );
  return oneRow(rows).outcome;
}

/** Removes an item. Answers why it was not, if it was not. */
export async function removeItem(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: ConversationName,
  item_id: string,
  now: Date | null,
): Promise<'removed' | 'absent' | 'locked' | 'gone'> {
  const rows = await db.query<{ outcome: 'removed' | 'absent' | 'locked' | 'gone' }>(
    'select remove_item($1, $2, $3, $4) as outcome',
    [account_id, id, item_id, now],
  );
  return oneRow(rows).outcome;
}

type Row = StoredContent & { id: string };

/** An item of a conversation. Undefined if there is none, or nobody can read it any more. */
export async function findItem(
  parts: StoredParts,
  name: ConversationName,
  item_id: string,
): Promise<ConversationItem | undefined> {
  const [row] = await parts.db.query<Row>(
    'select id, key_id, content from conversation_items where account_id = $1 and conversation_id = $2 and id = $3',
    [name.account_id, name.id, item_id],
  );
  return row && (await readRow(parts, name, row));
}

/** Reads all items before a place, oldest first, once there is memory for them. */
export async function readItems(
  parts: StoredParts,
  name: ConversationName,
  before: string,
  take: TakeMemory,
): Promise<ConversationItem[]> {
  const [size] = await parts.db.query<{ items: number; bytes: string }>(
    `select count(*)::int as items, coalesce(sum(json_bytes), 0)::text as bytes from conversation_items
      where account_id = $1 and conversation_id = $2 and place < $3`,
    [name.account_id, name.id, before],
  );
  if (!size || size.items === 0) return [];
  await take(Number(size.bytes) + size.items * item_bytes);
  const rows = await parts.db.query<Row>(
    `select id, key_id, content from conversation_items
      where account_id = $1 and conversation_id = $2 and place < $3 order by place`,
    [name.account_id, name.id, before],
  );
  return readRows(parts, name, rows);
}

/** A page ends here, however few items it has: they may have megabytes each. */
const page_bytes_max = 8_000_000;

export type ItemPage = { readonly items: ConversationItem[]; readonly has_more: boolean };

/** A page of the items after the one named `after`. Undefined if there is no such item. */
export async function listItems(
  parts: StoredParts,
  name: ConversationName,
  { limit, order, after }: { limit: number; order: 'asc' | 'desc'; after: string | undefined },
  take: TakeMemory,
): Promise<ItemPage | undefined> {
  const from = after === undefined ? undefined : await placeOf(parts, name, after);
  if (after !== undefined && from === undefined) return undefined;
  const links = await parts.db.query<{ place: string; json_bytes: number }>(
    `select place::text, json_bytes from conversation_items
      where account_id = $1 and conversation_id = $2 and ($3::bigint is null or place ${order === 'asc' ? '>' : '<'} $3)
      order by place ${order} limit $4`,
    [name.account_id, name.id, from ?? null, limit + 1],
  );
  let bytes = 0;
  const fitting = links.slice(0, limit).filter(({ json_bytes }, index) => {
    bytes += json_bytes;
    return index === 0 || bytes <= page_bytes_max;
  });
  await take(fitting.reduce((sum, { json_bytes }) => sum + json_bytes + item_bytes, 0));
  const rows = await parts.db.query<Row>(
    `select id, key_id, content from conversation_items
      where account_id = $1 and conversation_id = $2 and place = any($3) order by place ${order}`,
    [name.account_id, name.id, fitting.map(({ place }) => place)],
  );
  return { items: await readRows(parts, name, rows), has_more: fitting.length < links.length };
}

async function placeOf({ db }: StoredParts, name: ConversationName, item_id: string): Promise<string | undefined> {
  const [row] = await db.query<{ place: string }>(
    'select place::text from conversation_items where account_id = $1 and conversation_id = $2 and id = $3',
    [name.account_id, name.id, item_id],
  );
  return row?.place;
}

/** Those that nobody can read any more are left out. */
async function readRows(parts: StoredParts, name: ConversationName, rows: readonly Row[]): Promise<ConversationItem[]> {
  const items: ConversationItem[] = [];
  for (const row of rows) {
    const item = await readRow(parts, name, row);
    if (item) items.push(item);
  }
  return items;
}

async function readRow(
  { content_keys }: StoredParts,
  name: ConversationName,
  row: Row,
): Promise<ConversationItem | undefined> {
  const json = await readContent(content_keys, placeOfItem(name, row.id), row, stored_bytes_max);
  return json === undefined ? undefined : { id: row.id, item: objectOf(json) };
}
