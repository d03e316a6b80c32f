import { searchAccounts, type Account } from '../accounts/accounts.ts';
import { listKeys } from '../accounts/key-list.ts';
import { findKey, keyState, type ApiKey } from '../accounts/keys.ts';
import { listedModels } from '../catalog/alias.ts';
import type { Catalog, CatalogHolder } from '../catalog/catalog.ts';
import { findRecord, searchRecords, type RecordLine } from '../chat/record.ts';
import type { Db } from '../db/database.ts';
import { ApiError } from '../errors.ts';
import type { Query } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { listTaskLines, searchTaskLines, type TaskLine } from '../tasks/list.ts';
import { findDelivery } from '../webhooks/delivery.ts';
import { account_endpoint, session_endpoint } from './page.ts';
import { keysInSight, seesKey, type ProjectScope } from '../accounts/project-scope.ts';
import type { SearchHit, SearchView } from './views/search.ts';

/** The parts of the app that searching takes. */
type Parts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

const query_docs = {
  q: { description: 'An id, or words: 1 to 200 characters.', schema: { type: 'string' }, required: true },
};
const length_max = 200;

/** So many of each kind. */
const hits_max = 6;

/** Whatever of an account has this id, or these words: models, keys, tasks by their input, and both kinds of calls by their labels and errors. */
export const search_account = account_endpoint(
  'GET',
  '/search',
  'read',
  async (app, { account, query, scope }) => {
    const text = readText(query);
    const with_id = await hitsWithId(app, { account_id: account.id, scope }, text);
    if (with_id) return { status: 200, body: { data: with_id, is_partial: false } satisfies SearchView };
    const of_account = { account_id: account.id };
    const like = { ...of_account, search: text, project_ids: scope?.project_ids, limit: hits_max };
    const whose = { ...of_account, ...(await keysInSight(app.db, account.id, scope)), limit: hits_max };
    const [{ keys }, tasks, calls] = await Promise.all([
      listKeys(app.db, like, new Date(app.clock.now())),
      inTime(searchTaskLines(app.db, whose, text)),
      inTime(searchRecords(app.db, whose, text)),
    ]);
    const data = [
      ...modelsLike(app.catalog.current, text),
      ...keys.map((key) => keyHit(app.clock, key)),
      ...(tasks?.lines ?? []).map(taskHit),
      ...(calls?.lines ?? []).map(callHit),
    ];
    return { status: 200, body: { data, is_partial: !tasks || !calls } satisfies SearchView };
  },
  { query: query_docs, limited: 'own' },
);

/** For operators: accounts by their name, their id, one of their people, or a key. */
export const admin_search = session_endpoint(
  'GET',
  '/dash/admin/search',
  'operator',
  async ({ db }, { query }) => {
    const accounts = await searchAccounts(db, { search: readText(query), after: undefined, limit: hits_max });
    const view: SearchView = { data: accounts.map(accountHit), is_partial: false };
    return { status: 200, body: view };
  },
  { query: query_docs },
);

function readText(query: Query): string {
  const text = (query.get('q') ?? '').replaceAll('\0', ' ').trim();
  if (text !== '' && text.length <= length_max) return text;
  throw new ApiError('invalid_request', `q must have 1 to ${length_max} characters.`, { param: 'q' });
}

/** Returns what an id leads to, at most one hit; undefined if the text is no id of such a thing. */
async function hitsWithId(
  { db, clock }: Parts,
  { account_id, scope }: { account_id: string; scope: ProjectScope | undefined },
  id: string,
): Promise<SearchHit[] | undefined> {
  if (isId('task', id)) {
    const { lines } = await listTaskLines(db, {
      account_id,
      id,
      limit: 1,
      ...(await keysInSight(db, account_id, scope)),
    });
    return lines.map(taskHit);
  }
  if (isId('req', id)) {
    const record = await findRecord(db, account_id, id);
    if (!record || !(await seesKey(db, scope, record.key_id))) return [];
    return [callHit(record)];
  }
  if (isId('key', id)) {
    const key = await findKey(db, id, account_id);
    return key && (await seesKey(db, scope, id)) ? [keyHit(clock, key)] : [];
  }
  if (isId('dlv', id)) {
    const delivery = scope ? undefined : await findDelivery(db, id); // they are of the account, not of a project
    if (delivery?.account_id !== account_id) return [];
    return [{ kind: 'delivery', id, title: delivery.url, detail: `${delivery.event}, ${delivery.state}, ${id}` }];
  }
  return isId('acct', id) ? [] : undefined;
}

/** Returns undefined if it takes too long. */
async function inTime<T>(search: Promise<T>): Promise<T | undefined> {
  try {
    return await search;
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'timeout') return undefined;
    throw error;
  }
}

function modelsLike(catalog: Catalog, text: string): SearchHit[] {
  const part = text.toLowerCase();
  return listedModels(catalog)
    .filter(({ model }) => !model.hidden)
    .filter(({ model: { id, name } }) => id.toLowerCase().includes(part) || name.toLowerCase().includes(part))
    .slice(0, hits_max)
    .map(({ model: { id, name, kind } }) => ({ kind: 'model', id, title: name, detail: `${id}, ${kind}` }));
}

function keyHit(clock: Clock, key: ApiKey): SearchHit {
  const { id, name, prefix, last_four } = key;
  return { kind: 'key', id, title: name, detail: `${prefix}…${last_four}, ${keyState(key, clock.now())}` };
}

function taskHit({ id, prompt, model, status }: TaskLine): SearchHit {
  return { kind: 'task', id, title: prompt ?? id, detail: `${model}, ${status}` };
}

function callHit(call: Pick<RecordLine, 'id' | 'model' | 'style' | 'status' | 'end_user'>): SearchHit {
  const { id, model, style, status, end_user } = call;
  const outcome = status < 400 ? 'answered' : `failed (${status})`;
  const user = end_user === null ? '' : `, user ${end_user}`;
  return { kind: 'chat', id, title: model, detail: `${style} call, ${outcome}${user}, ${id}` };
}

function accountHit({ id, name, status }: Account): SearchHit {
  return { kind: 'account', id, title: name, detail: `${id}, ${status}` };
}
