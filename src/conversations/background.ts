import { readContent, storeContent, type StoredContent } from '../db/content.ts';
import { oneRow } from '../db/one-row.ts';
import { recordText } from '../db/record.ts';
import type { Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import type { Funds } from '../money/holds.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import { live_keys } from '../queue/pgboss-tables.ts';
import { readStored, stored_bytes_max, type StoredParts, type StoredResponse } from './stored-responses.ts';

/** The name of a response in the background among all accounts. */
export type BackgroundName = { readonly account_id: string; readonly id: string };

export type BackgroundStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** A response in the background without its contents. */
export type BackgroundRow = {
  readonly account_id: string;
  readonly id: string;
  readonly request_id: string;
  readonly model: string;
  readonly currency: string;
  readonly max_tokens: number;
  readonly is_streamed: boolean;
  readonly status: BackgroundStatus;
  readonly cancel_requested: boolean;
  readonly claim: string | null;
  readonly sent_at: Date | null;
  readonly sent_provider: string | null;
  readonly sent_route: string | null;
  readonly seen_at: Date | null;
  readonly suspected_at: Date | null;
  readonly ended: unknown;
  readonly created_at: Date;
  readonly begin_before: Date;
  readonly completed_at: Date | null;
  readonly done_at: Date | null;
};

/** The channel on which the id of a response is told whose row or events have changed. */
export const responses_channel = 'responses_changed';

/** The queue of jobs that make them. */
export const run_queue = 'response.run';

/** Number of responses of one account that are not done. */
export const unfinished_max = 100;

/** For backups: what is done loses contents alone. Its hold is made with it. */
export const growing_background_responses: GrowingTable = {
  name: 'public.background_responses',
  keys: ['id'],
  changing: '(select * from background_responses where done_at is null)',
  is_later: `(r.done_at is null or ${hasLaterEntry('r.request_id', ['hold'])})`,
  bytes: `(select coalesce(sum(json_bytes), 0) from background_contents c
    where c.account_id = r.account_id and c.response_id = r.id)`,
  parts: { name: 'public.background_contents', keys: ['response_id'] },
};

/** A content of a response: its request, its state, or a part of its events. */
export type NewContent = { id: string; json: string; first_event?: number; last_event?: number };

export type NewBackground = BackgroundName & {
  request_id: string;
  model: string;
  currency: string;
  is_streamed: boolean;
  created_at: Date;
  begin_before: Date;
  expires_at: Date;
};

/** A place in the database for a content. */
export function placeOfContent({ account_id, id }: BackgroundName, content_id: string): string {
  return `background_contents ${account_id} ${id} ${content_id}`;
}

type Encrypted = { contents: string; bytes: Buffer[] };

async function encrypted(
  { content_keys }: Pick<StoredParts, 'content_keys'>,
  name: BackgroundName,
  contents: readonly NewContent[],
): Promise<Encrypted> {
  const stored: StoredContent[] = [];
  for (const { id, json } of contents) stored.push(await storeContent(content_keys, placeOfContent(name, id), json));
  const rows = contents.map(({ id, json, first_event = null, last_event = null }, index) => {
    const key_id = stored[index]?.key_id ?? null;
    return { id, first_event, last_event, key_id, json_bytes: Buffer.byteLength(json) };
  });
  return { contents: recordText(rows), bytes: stored.map(({ content }) => content) };
}

export type InsertResult = Funds & {
  outcome: 'created' | 'exists' | 'crowded' | 'insufficient' | 'over_limit' | 'leased';
};

/** Writes a new response with its hold and its job; `hold` is that of hold_money. The same values may be tried again. */
export async function prepareBackground(
  parts: StoredParts,
  row: NewBackground,
  contents: readonly NewContent[],
): Promise<(hold: string, max_tokens: number) => Promise<InsertResult>> {
  const { contents: records, bytes } = await encrypted(parts, row, contents);
  return async (hold, max_tokens) => {
    const rows = await parts.db.query<InsertResult>(
      'select outcome, available, remaining from insert_background_response($1, $2, $3, $4, $5)',
      [recordText({ ...row, max_tokens }), hold, unfinished_max, records, bytes],
    );
    return oneRow(rows);
  };
}

const columns = `account_id, id, request_id, model, currency, max_tokens, is_streamed, status, cancel_requested, claim, sent_at, sent_provider,
  sent_route, seen_at, suspected_at, ended, created_at, begin_before, completed_at, done_at`;

/** A response of the account. Undefined if there is none. */
export async function findBackground(
  { db }: { readonly db: Queryable },
  { account_id, id }: BackgroundName,
): Promise<BackgroundRow | undefined> {
  const [row] = await db.query<BackgroundRow>(
    `select ${columns} from background_responses where account_id = $1 and id = $2`,
    [account_id, id],
  );
  return row;
}

/** Reads a content. Undefined if it is not there, or nobody can read it any more. */
export async function readBackground(
  { db, content_keys }: StoredParts,
  name: BackgroundName,
  id: 'request' | 'response',
): Promise<string | undefined> {
  const [row] = await db.query<StoredContent>(
    'select key_id, content from background_contents where account_id = $1 and response_id = $2 and id = $3',
    [name.account_id, name.id, id],
    'long', // tens of megabytes take seconds on a busy machine
  );
  return row && (await readContent(content_keys, placeOfContent(name, id), row, stored_bytes_max));
}

/** Reads the state of a response with its input. */
export async function readBackgroundResponse(
  parts: StoredParts,
  name: BackgroundName,
): Promise<StoredResponse | undefined> {
  const json = await readBackground(parts, name, 'response');
  return json === undefined ? undefined : readStored(json);
}

/** Bytes of a request's JSON, which are taken before it is read. */
export async function requestBytes(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
): Promise<number> {
  const [row] = await db.query<{ json_bytes: number }>(
    "select json_bytes from background_contents where account_id = $1 and response_id = $2 and id = 'request'",
    [account_id, id],
  );
  return row?.json_bytes ?? 0;
}

/** Takes a response for a worker, as long as no upstream was asked. False if it has ended, or one was. */
export async function claimUnsent(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  claim: string,
): Promise<boolean> {
  const rows = await db.query(
    `update background_responses set claim = $3
      where account_id = $1 and id = $2 and completed_at is null and sent_at is null returning id`,
    [account_id, id, claim],
  );
  return rows.length > 0;
}

/** Takes a response from a worker that died after it had asked an upstream. */
export async function claimSent(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  claim: string,
): Promise<boolean> {
  const rows = await db.query(
    'update background_responses set claim = $3 where account_id = $1 and id = $2 and completed_at is null returning id',
    [account_id, id, claim],
  );
  return rows.length > 0;
}

/** Writes down that an upstream is about to be asked. False if the response is another worker's, or was cancelled. */
export async function noteSent(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  claim: string,
  sent: { provider: string; route: string; now: Date },
): Promise<boolean> {
  const rows = await db.query(
    `update background_responses
        set sent_at = coalesce(sent_at, $4), seen_at = $4, sent_provider = $5, sent_route = $6, status = 'in_progress'
      where account_id = $1 and id = $2 and claim = $3 and completed_at is null
        and (sent_at is not null or not cancel_requested) returning id`,
    [account_id, id, claim, sent.now, sent.provider, sent.route],
  );
  return rows.length > 0;
}

/** Says that a response's worker is there, and answers whether it is still its own and whether it was cancelled. */
export async function saySeen(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  claim: string,
  now: Date,
): Promise<{ is_own: boolean; cancel_requested: boolean }> {
  const [row] = await db.query<{ cancel_requested: boolean }>(
    `update background_responses set seen_at = $4, suspected_at = null
      where account_id = $1 and id = $2 and claim = $3 and completed_at is null returning cancel_requested`,
    [account_id, id, claim, now],
  );
  return { is_own: row !== undefined, cancel_requested: row?.cancel_requested === true };
}

/** Writes down since when a response's worker is missed. */
export async function suspect(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  now: Date,
): Promise<void> {
  await db.query(
    'update background_responses set suspected_at = coalesce(suspected_at, $3) where account_id = $1 and id = $2',
    [account_id, id, now],
  );
}

/** Asks whoever makes a response to end it. False if it has ended. */
export async function requestCancel(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
): Promise<boolean> {
  const rows = await db.query(
    `update background_responses set cancel_requested = true
      where account_id = $1 and id = $2 and completed_at is null returning id`,
    [account_id, id],
  );
  return rows.length > 0;
}

/** Adds events of a response, as long as it is the worker's. False if it is not. */
export async function addEvents(
  parts: StoredParts,
  name: BackgroundName,
  claim: string,
  content: NewContent,
): Promise<boolean> {
  const { contents, bytes } = await encrypted(parts, name, [content]);
  const rows = await parts.db.query(
    `select add_background_contents(account_id, id, $4, $5) from background_responses
      where account_id = $1 and id = $2 and claim = $3 and completed_at is null`,
    [name.account_id, name.id, claim, contents, bytes],
  );
  return rows.length > 0;
}

/** Makes the status of a response final, once. False if it is another worker's by now, or has ended. */
export async function endBackground(
  parts: StoredParts,
  name: BackgroundName,
  claim: string,
  end: { status: BackgroundStatus; now: Date; ended: object; contents: readonly NewContent[] },
): Promise<boolean> {
  const { contents, bytes } = await encrypted(parts, name, end.contents);
  const rows = await parts.db.query<{ is_ended: boolean }>(
    'select end_background_response($1, $2, $3, $4, $5, $6, $7, $8) as is_ended',
    [name.account_id, name.id, claim, end.status, end.now, recordText(end.ended), contents, bytes],
  );
  return oneRow(rows).is_ended;
}

/** Writes down that nothing is left to be done for a response. Its state is among the stored ones, unless it is too large. */
export async function noteDone(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
  now: Date,
): Promise<void> {
  await db.query('update background_responses set done_at = $3 where account_id = $1 and id = $2 and done_at is null', [
    account_id,
    id,
    now,
  ]);
  await db.query(
    `delete from background_contents c where account_id = $1 and response_id = $2 and id = 'response'
        and exists (select from stored_responses r where r.account_id = $1 and r.id = $2)`,
    [account_id, id],
  );
}

/** Events of a stream behind a number, and the number of the last one; fewer than there are if they are long. */
export async function readEvents(
  { db, content_keys }: StoredParts,
  name: BackgroundName,
  after: number,
): Promise<{ text: string; first: number; last: number } | undefined> {
  const [row] = await db.query<StoredContent & { id: string; first_event: number; last_event: number }>(
    `select id, first_event, last_event, key_id, content from background_contents
      where account_id = $1 and response_id = $2 and last_event > $3 order by last_event limit 1`,
    [name.account_id, name.id, after],
    'long',
  );
  if (!row) return undefined;
  const json = await readContent(content_keys, placeOfContent(name, row.id), row, stored_bytes_max);
  return { text: json ?? '', first: row.first_event, last: row.last_event };
}

/** The number of the last event that was written down; -1 if there is none. */
export async function lastEvent({ db }: Pick<StoredParts, 'db'>, { account_id, id }: BackgroundName): Promise<number> {
  const [row] = await db.query<{ last: number | null }>(
    'select max(last_event) as last from background_contents where account_id = $1 and response_id = $2',
    [account_id, id],
  );
  return row?.last ?? -1;
}

/** Returns those that are not done and have no job, such as after a backup was restored. */
export async function listForgotten(db: Queryable, created_before: Date, count: number): Promise<BackgroundName[]> {
  return db.query(
    `select b.account_id, b.id from background_responses b
      where b.done_at is null and b.created_at < $1
        and not exists (select from ${live_keys} live where live.key = b.id) limit $2`,
    [created_before, count],
  );
}

/** Deletes a response that is done. */
export async function deleteBackground(
  { db }: Pick<StoredParts, 'db'>,
  { account_id, id }: BackgroundName,
): Promise<boolean> {
  const rows = await db.query(
    'delete from background_responses where account_id = $1 and id = $2 and done_at is not null returning id',
    [account_id, id],
  );
  return rows.length > 0;
}

/** Deletes all that are done of an account, and has the others cancelled. */
export async function deleteAllBackground({ db }: Pick<StoredParts, 'db'>, account_id: string): Promise<void> {
  await db.query('delete from background_responses where account_id = $1 and done_at is not null', [account_id]);
  await db.query(
    'update background_responses set cancel_requested = true where account_id = $1 and completed_at is null',
    [account_id],
  );
}
