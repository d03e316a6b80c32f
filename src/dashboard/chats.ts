import { keyNames } from '../accounts/key-list.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Answer } from '../http/endpoint.ts';
import { moment, oneOf, wholeNumber } from '../http/query.ts';
import { findRecord, listRecords, type KeyedRecord, type RecordLine } from '../chat/record.ts';
import { tagsIn } from '../chat/labels.ts';
import { hasContent } from '../contents/stored.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { costView } from '../money/money.ts';
import { chargeOfCall } from './charge.ts';
import { feedbackOf } from './feedback.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { keysInSight, seesKey } from '../accounts/project-scope.ts';
import { keyName } from './tasks.ts';
import type { ChatLineView, ChatView, Page } from './views/activity.ts';

/** The parts of the app that the page of a call takes. */
type ChatParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

const text = { type: 'string' };
const filters = {
  limit: { description: 'Number of calls.', schema: { type: 'integer' } },
  after: { description: 'Older than this one.', schema: text },
  outcome: { description: 'ok or failed.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
  from: { description: 'Made at this time or later.', schema: text },
  to: { description: 'Made before this time.', schema: text },
};

/** The account's chat calls, newest first: numbers, no words. */
export const list_chats = account_endpoint('GET', '/chats', 'read', handleList, { query: filters, limited: 'own' });

async function handleList({ db }: { db: Db }, { account, query, scope }: AccountCall): Promise<Answer> {
  const after = query.get('after');
  if (after !== undefined && !isId('req', after)) {
    throw new ApiError('invalid_request', 'after must be the id of a call.', { param: 'after' });
  }
  const outcome = oneOf(query, 'outcome', ['ok', 'failed']);
  const [model, key_id] = [query.get('model'), query.get('key')];
  const [created_after, created_before] = [moment(query, 'from'), moment(query, 'to')];
  const { lines, has_more } = await listRecords(db, {
    account_id: account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 25,
    ...(after !== undefined && { after }),
    ...(outcome && { ok: outcome === 'ok' }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(await keysInSight(db, account.id, scope)),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  });
  const names = await keyNames(
    db,
    account.id,
    lines.map((line) => line.key_id),
  );
  const page: Page<ChatLineView> = { data: lines.map((line) => renderChat(line, names)), has_more };
  return { status: 200, body: page };
}

export function renderChat(line: Omit<RecordLine, 'route'>, names: ReadonlyMap<string, string>): ChatLineView {
  const { id, model, style, stream, status, error_type, finish, first_content_ms, total_ms, end_user } = line;
  const metadata = line.metadata ?? {};
  return {
    id,
    model,
    style,
    stream,
    status,
    error_type,
    finish,
    input_tokens: line.input_tokens,
    cached_input_tokens: line.cached_input_tokens,
    output_tokens: line.output_tokens,
    first_content_ms,
    total_ms,
    cost: costView(line.cost, line.currency),
    key: keyName(line.key_id, names),
    created_at: line.created_at.toISOString(),
    user: end_user,
    tags: tagsIn(metadata),
    metadata,
  };
}

/** One call, with the routes that were tried; what they are called is told to operators only. */
export const get_chat = account_endpoint('GET', '/chats/{id}', 'read', readChat, { limited: 'own' });

/** Returns the record of a call; undefined if the account has none, or it is out of sight. */
export async function findChat(db: Db, { account, params, scope }: AccountCall): Promise<KeyedRecord | undefined> {
  const { id = '' } = params;
  const record = isId('req', id) ? await findRecord(db, account.id, id) : undefined;
  return record && (await seesKey(db, scope, record.key_id)) ? record : undefined;
}

async function readChat(app: ChatParts, call: AccountCall): Promise<Answer> {
  const { account, person } = call;
  const record = await findChat(app.db, call);
  if (!record) throw new ApiError('not_found', 'There is no such call, or its record is no longer kept.');
  const { id } = record;
  const [names, has_content, feedback, charge] = await Promise.all([
    keyNames(app.db, account.id, [record.key_id]),
    hasContent(app.db, { account_id: account.id, id }, new Date(app.clock.now())),
    feedbackOf(app.db, account.id, id, person.user.id),
    chargeOfCall(app, account, record),
  ]);
  const { cache_write_tokens, reasoning_tokens, counted_here, error_message } = record;
  const attempts = record.attempts.map(({ reason, upstream_id, ...attempt }) =>
    person.user.is_operator
      ? {
          ...attempt,
          ...(reason !== undefined && { reason }),
          ...(upstream_id !== undefined && { upstream_id }),
        }
      : { ...attempt, route: null },
  );
  const search_units = record.tools?.calls?.search_unit ?? null;
  const facts = {
    error_message,
    cache_write_tokens,
    reasoning_tokens,
    counted_here,
    search_units,
    has_content,
    attempts,
    feedback,
    charge,
  };
  const view: ChatView = { ...renderChat(record, names), ...facts };
  return { status: 200, body: view };
}
