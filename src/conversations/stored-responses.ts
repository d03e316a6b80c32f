import { isObject, type Json, type JsonObject } from '../catalog/model.ts';
import { readContent, storeContent, type ContentKeys, type StoredContent } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { objectOf } from '../styles/stream.ts';

/** The parts of the app that stored responses take. */
export type StoredParts = { readonly db: Db; readonly content_keys: ContentKeys };

/** An answer of the responses style, with the input of its call alone. */
export type StoredResponse = { response: JsonObject; input: JsonObject[] };

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

/** Stores a response. */
export async function storeResponse({ db, content_keys }: StoredParts, response: NewResponse): Promise<void> {
  const { account_id, id, previous_id, item_ids, json, created_at, expires_at } = response;
  const { key_id, content } = await storeContent(content_keys, placeOf(account_id, id), json);
  await db.query(
    `insert into stored_responses
       (account_id, id, previous_id, item_ids, key_id, content, size_bytes, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
    [account_id, id, previous_id, item_ids, key_id, content, content.length, created_at, expires_at],
    'brief',
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
  return row && (await readRow(parts, account_id, row, { left_bytes: stored_bytes_max }));
}

/** Far more than the largest that is stored. */
const stored_bytes_max = 134_217_728;

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

/** Bytes of content that may still be read; the reader counts them down. Below zero nothing is read any more. */
export type Allowance = { left_bytes: number };

/**
 * Reads a response and all that it continues, oldest first. `missing`: the id of the one that is not there. Throws
 * RangeError where the allowance does not suffice.
 */
export async function findChain(
  parts: StoredParts,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
  allowance: Allowance,
): Promise<StoredResponse[] | { missing: string }> {
  const rows = await parts.db.query<Row>(
    `with recursive chain as (
       select id, previous_id, key_id, content, 1 as depth from stored_responses
        where account_id = $1 and id = $2 and expires_at > $3
       union all
       select r.id, r.previous_id, r.key_id, r.content, c.depth + 1
         from chain c join stored_responses r on r.account_id = $1 and r.id = c.previous_id and r.expires_at > $3
        where c.depth < ${chain_max})
     select id, previous_id, key_id, content from chain order by depth desc`,
    [account_id, id, now],
  );
  const [oldest] = rows;
  if (!oldest) return { missing: id };
  if (oldest.previous_id !== null) return { missing: oldest.previous_id };
  const chain: StoredResponse[] = [];
  for (const row of rows) {
    const stored = await readRow(parts, account_id, row, allowance);
    if (!stored) return { missing: row.id };
    chain.push(stored);
  }
  return chain;
}

/** Finds items of outputs by their ids. Those that are not there are absent. Throws like `findChain`. */
export async function findItems(
  parts: StoredParts,
  account_id: string,
  item_ids: readonly string[],
  now: Date,
  allowance: Allowance,
): Promise<Map<string, JsonObject>> {
  const rows = await parts.db.query<Row>(
    `select id, previous_id, key_id, content from stored_responses
      where account_id = $1 and item_ids && $2 and expires_at > $3 order by created_at`,
    [account_id, item_ids, now],
  );
  const ids = new Set(item_ids);
  const items = new Map<string, JsonObject>();
  for (const row of rows) {
    const stored = await readRow(parts, account_id, row, allowance);
    for (const item of stored ? outputOf(stored) : [])
      if (typeof item['id'] === 'string' && ids.has(item['id'])) items.set(item['id'], item);
  }
  return items;
}

async function readRow(
  { content_keys }: StoredParts,
  account_id: string,
  row: Row,
  allowance: Allowance,
): Promise<StoredResponse | undefined> {
  if (allowance.left_bytes <= 0) throw new RangeError('too much stored content');
  const json = await readContent(content_keys, placeOf(account_id, row.id), row, allowance.left_bytes);
  if (json === undefined) return undefined;
  allowance.left_bytes -= json.length;
  const { response, input } = objectOf(json);
  if (!isObject(response)) return undefined;
  return { response, input: itemsOf(input) };
}

function itemsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The items of a stored response's output. */
export function outputOf({ response }: Pick<StoredResponse, 'response'>): JsonObject[] {
  return itemsOf(response['output']);
}
