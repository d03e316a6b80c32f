import type { JsonObject } from '../catalog/model.ts';
import { eachContent, type CallContent } from '../contents/stored.ts';
import { readBackgroundResponse } from './background.ts';
import { findConversation } from './conversations.ts';
import { conversation_items_max, listItems } from './items.ts';
import { findResponse, type StoredParts, type StoredResponse } from './stored-responses.ts';

/** Content of an account, a line each; `null` in place of what no secret opens. */
export type ExportedLine =
  | { type: 'response'; id: string; content: JsonObject | null }
  | { type: 'conversation'; id: string; created_at: string; metadata: JsonObject }
  | { type: 'conversation_item'; id: string; conversation_id: string; content: JsonObject }
  | { type: 'chat_content'; id: string; created_at: string; content: CallContent | null };

type Owner = { account_id: string; now: Date };

const page_rows = 500;
const items_of_page = 100;

/**
 * Reads all that is stored of an account: responses with the input of their call, those in the background among them,
 * then conversations with their items, then contents of chat calls. One at a time, as they may have tens of megabytes; what expires meanwhile is left out.
 */
export async function* exportContent(parts: StoredParts, owner: Owner): AsyncGenerator<ExportedLine> {
  const { account_id, now } = owner;
  for await (const id of idsIn(parts, 'stored_responses', owner)) {
    const stored = await findResponse(parts, { account_id, id }, now);
    yield { type: 'response', id, content: contentOf(stored) };
  }
  for await (const id of idsIn(parts, 'background_responses', owner)) {
    const is_listed = await findResponse(parts, { account_id, id }, now);
    if (!is_listed)
      yield { type: 'response', id, content: contentOf(await readBackgroundResponse(parts, { account_id, id })) };
  }
  for await (const id of idsIn(parts, 'conversations', owner)) yield* linesOfConversation(parts, owner, id);
  for await (const { id, created_at, content } of eachContent(parts, { account_id }, now))
    yield { type: 'chat_content', id, created_at: created_at.toISOString(), content: content ?? null };
}

function contentOf(stored: StoredResponse | undefined): JsonObject | null {
  return stored ? { response: stored.response, input: stored.input } : null;
}

async function* linesOfConversation(
  parts: StoredParts,
  { account_id, now }: Owner,
  id: string,
): AsyncGenerator<ExportedLine> {
  const name = { account_id, id };
  const conversation = await findConversation(parts, name, now);
  if (!conversation) return;
  const { metadata, created_at } = conversation;
  yield { type: 'conversation', id, created_at: created_at.toISOString(), metadata };
  let after: string | undefined;
  for (let read = 0; read < conversation_items_max * 2; read += items_of_page) {
    const page = await listItems(parts, name, { limit: items_of_page, order: 'asc', after }, async () => {});
    for (const { id: item_id, item } of page?.items ?? [])
      yield { type: 'conversation_item', id: item_id, conversation_id: id, content: item };
    after = page?.items.at(-1)?.id;
    if (!page?.has_more || after === undefined) return;
  }
}

type Table = 'stored_responses' | 'background_responses' | 'conversations';

/** The ids of an account in a table, in their order: ids sort by time. */
async function* idsIn({ db }: StoredParts, table: Table, { account_id, now }: Owner): AsyncGenerator<string> {
  let last = '';
  for (;;) {
    const rows = await db.query<{ id: string }>(
      `select id from ${table} where account_id = $1 and id > $2 and expires_at > $3 order by id limit ${page_rows}`,
      [account_id, last, now],
    );
    for (const { id } of rows) yield id;
    const end = rows.at(-1);
    if (!end || rows.length < page_rows) return;
    last = end.id;
  }
}
