import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { readContent, storeContent, type ContentKeys, type StoredContent } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { objectOf } from '../styles/stream.ts';

/** The parts of the app that stored responses take. */
export type StoredParts = { readonly db: Db; readonly content_keys: ContentKeys };

/** An answer of the responses style, with the input of its call alone. */
export type StoredResponse = {
  response: JsonObject;
  input: JsonObject[];
  /** Came before it: the items of this conversation before this place. */
  conversation?: { id: string; before: string };
};

export type NewResponse = {
  account_id: string;
  id: string;
  previous_id: string | null;
  item_ids: string[];
  json: string;
  created_at: Date;
  expires_at: Date;
};

type Row = StoredContent & { id: string; previous_id: string | null };

/** No chain of responses is longer. */
const chain_max = 1_000;

/** For backups: a response never changes, whatever secret it is encrypted with. */
export const growing_responses: GrowingTable = {
  name: 'public.stored_responses',
  keys: ['id'],
  is_later: 'r.created_at > m.at',
  bytes: 'r.size_bytes',
};

/** Stores a response; not over the connections of money: it may have megabytes. */
export async function storeResponse({ db, content_keys }: StoredParts, response: NewResponse): Promise<void> {
  const { account_id, id, previous_id, item_ids, json, created_at, expires_at } = response;
  const { key_id, content } = await storeContent(content_keys, placeOf(account_id, id), json);
  await db.query(
    `insert into stored_responses
       (account_id, id, previous_id, item_ids, key_id, content, size_bytes, json_bytes, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
    [
      account_id,
      id,
      previous_id,
      item_ids,
      key_id,
      content,
      content.length,
      Buffer.byteLength(json),
      created_at,
      expires_at,
    ],
  );
}

export function placeOf(account_id: string, id: string): string {
  return `stored_responses ${account_id} ${id}`;
}

/** A response of the account. Undefined if there is none, it has expired, or nobody can read it any more. */
export async function findResponse(
  parts: StoredParts,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
): Promise<StoredResponse | undefined> {
  const [row] = await parts.db.query<Row>(
    `select id, previous_id, key_id, content from stored_responses
      where account_id = $1 and id = $2 and expires_at > $3`,
    [account_id, id, now],
  );
  return row && (await readRow(parts, account_id, row));
}

/** Far more than the largest that is stored. */
export const stored_bytes_max = 134_217_728;

/** Deletes a response. False if there is none. */
export async function deleteResponse({ db }: StoredParts, account_id: string, id: string, now: Date): Promise<boolean> {
  const rows = await db.query(
    'delete from stored_responses where account_id = $1 and id = $2 and expires_at > $3 returning id',
    [account_id, id, now],
  );
  return rows.length > 0;
}

/** Deletes all responses of an account. Answers how many. */
export async function deleteResponses({ db }: Pick<StoredParts, 'db'>, account_id: string): Promise<number> {
  const rows = await db.query('delete from stored_responses where account_id = $1 returning id', [account_id]);
  return rows.length;
}

/** Takes the memory of so many bytes before they are read. Rejects where there is no room, or they are too many. */
export type TakeMemory = (bytes: number) => Promise<void>;

/** Reads a response and all that it continues, oldest first. `missing`: the id of the one that is not there. */
export async function findChain(
  parts: StoredParts,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
  take: TakeMemory,
): Promise<StoredResponse[] | { missing: string }> {
  const links = await parts.db.query<Link>(
    `with recursive chain as (
       select id, previous_id, json_bytes, 1 as depth from stored_responses
        where account_id = $1 and id = $2 and expires_at > $3
       union all
       select r.id, r.previous_id, r.json_bytes, c.depth + 1
         from chain c join stored_responses r on r.account_id = $1 and r.id = c.previous_id and r.expires_at > $3
        where c.depth < ${chain_max})
     select id, previous_id, json_bytes from chain order by depth desc`,
    [account_id, id, now],
  );
  const [oldest] = links;
  if (!oldest) return { missing: id };
  if (oldest.previous_id !== null) return { missing: oldest.previous_id };
  const read = await readLinks(parts, account_id, links, take);
  const chain: StoredResponse[] = [];
  for (const link of links) {
    const stored = read.get(link.id);
    if (!stored) return { missing: link.id };
    chain.push(stored);
  }
  return chain;
}

/** A row without its content, which may be much. */
type Link = { id: string; previous_id: string | null; json_bytes: number };

async function readLinks(
  parts: StoredParts,
  account_id: string,
  links: readonly Link[],
  take: TakeMemory,
): Promise<Map<string, StoredResponse>> {
  await take(links.reduce((sum, { json_bytes }) => sum + json_bytes, 0));
  const ids = links.map(({ id }) => id);
  const rows = await parts.db.query<Row>(
    'select id, previous_id, key_id, content from stored_responses where account_id = $1 and id = any($2)',
    [account_id, ids],
  );
  const read = new Map<string, StoredResponse>();
  for (const row of rows) {
    const stored = await readRow(parts, account_id, row);
    if (stored) read.set(row.id, stored);
  }
  return read;
}

/** Finds items of outputs by their ids. Those that are not there are absent. */
export async function findItems(
  parts: StoredParts,
  account_id: string,
  item_ids: readonly string[],
  now: Date,
  take: TakeMemory,
): Promise<Map<string, JsonObject>> {
  const links = await parts.db.query<Link>(
    `select id, previous_id, json_bytes from stored_responses
      where account_id = $1 and item_ids && $2 and expires_at > $3 order by created_at`,
    [account_id, item_ids, now],
  );
  const ids = new Set(item_ids);
  const items = new Map<string, JsonObject>();
  const read = await readLinks(parts, account_id, links, take);
  for (const link of links) {
    const stored = read.get(link.id);
    for (const item of stored ? outputOf(stored) : [])
      if (typeof item['id'] === 'string' && ids.has(item['id'])) items.set(item['id'], item);
  }
  return items;
}

async function readRow(
  { content_keys }: StoredParts,
  account_id: string,
  row: Row,
): Promise<StoredResponse | undefined> {
  const json = await readContent(content_keys, placeOf(account_id, row.id), row, stored_bytes_max);
  return json === undefined ? undefined : readStored(json);
}

/** Reads a response with its input out of their JSON. Undefined for what is none. */
export function readStored(json: string): StoredResponse | undefined {
  const { response, input, conversation } = objectOf(json);
  if (!isObject(response)) return undefined;
  return { response, input: itemsOf(input), ...(isObject(conversation) && startIn(conversation)) };
}

function startIn({ id, before }: JsonObject): Pick<StoredResponse, 'conversation'> {
  return typeof id === 'string' && typeof before === 'string' ? { conversation: { id, before } } : {};
}

function itemsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The items of a stored response's output. */
export function outputOf({ response }: Pick<StoredResponse, 'response'>): JsonObject[] {
  return itemsOf(response['output']);
}
