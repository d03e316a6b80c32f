import type { Queryable } from '../db/database.ts';
import { conditionsOf } from '../db/conditions.ts';
import { budgetsNearLimit, keysOfProjects, projectsOfKeys } from '../money/key-budgets.ts';
import { isId } from '../lib/ids.ts';
import { key_columns, type ApiKey } from './keys.ts';

/**
 * Lists of an account's keys. An account may have a hundred thousand, and deleted ones stay: nothing here returns all of
 * them. What is searched is read along the index of the account's keys, newest first, until a page is full.
 */

/** `active`: it works. `ended`: it has expired or is deleted. `present`: it is not deleted. */
export const key_states = ['active', 'ended', 'present'] as const;

export type KeyFilter = {
  account_id: string;
  /** A part of the name, the last four characters, or an id or its beginning. */
  search?: string | undefined;
  /** Without it, keys of all states. */
  state?: (typeof key_states)[number] | undefined;
  /** Only keys that are in these projects now. */
  project_ids?: readonly string[] | undefined;
};

export type KeyPage = { keys: ApiKey[]; has_more: boolean };

/** Returns a page of keys, newest first. `after`: the id of the last key of the page before. */
export async function listKeys(
  db: Queryable,
  filter: KeyFilter & { limit: number; after?: string | undefined },
  now: Date,
): Promise<KeyPage> {
  const { account_id, after, limit } = filter;
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    ['(created_at, id) < ((select created_at from api_keys where account_id = $1 and id = ?), ?)', after],
    ...searchOf(filter.search),
    ...stateOf(filter.state, now),
    [`id in (${keysOfProjects('$1', '?')})`, filter.project_ids],
  ]);
  const rows = await db.query<ApiKey>(
    `select ${key_columns} from api_keys where ${text} order by created_at desc, id desc limit ${limit + 1}`,
    values,
  );
  return { keys: rows.slice(0, limit), has_more: rows.length > limit };
}

type Condition = readonly [condition: string, value: unknown];

function searchOf(search: string | undefined): Condition[] {
  const words = search?.replaceAll('\0', '').trim() ?? '';
  if (words === '') return [];
  if (isId('key', words)) return [['id = ?', words]];
  return [['(strpos(lower(name), lower(?)) > 0 or last_four = ? or starts_with(id, ?))', words]];
}

const works = '(deleted_at is null or deleted_at > ?) and (expires_at is null or expires_at > ?)';

function stateOf(state: KeyFilter['state'], now: Date): Condition[] {
  if (state === 'active') return [[works, now]];
  if (state === 'ended') return [['(deleted_at <= ? or expires_at <= ?)', now]];
  return state === 'present' ? [['(deleted_at is null or deleted_at > ?)', now]] : [];
}

/** Returns these keys of an account, deleted ones too. */
export function findKeys(db: Queryable, account_id: string, ids: Iterable<string>): Promise<ApiKey[]> {
  return db.query(`select ${key_columns} from api_keys where account_id = $1 and id = any($2)`, [account_id, [...ids]]);
}

/** Returns the names of these keys of an account, deleted ones too. */
export async function keyNames(
  db: Queryable,
  account_id: string,
  ids: Iterable<string | null | undefined>,
): Promise<Map<string, string>> {
  const rows = await namedKeys(db, account_id, ids);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** The same; keys of one name, as before and after a rotation, have their last four characters too: `Website (…76Sx)`. */
export async function distinctKeyNames(
  db: Queryable,
  account_id: string,
  ids: Iterable<string | null | undefined>,
): Promise<Map<string, string>> {
  const rows = await namedKeys(db, account_id, ids);
  const by_name = Map.groupBy(rows, ({ name }) => name);
  const isShared = (name: string) => (by_name.get(name)?.length ?? 0) > 1;
  return new Map(rows.map(({ id, name, last_four }) => [id, isShared(name) ? `${name} (…${last_four})` : name]));
}

async function namedKeys(
  db: Queryable,
  account_id: string,
  ids: Iterable<string | null | undefined>,
): Promise<Pick<ApiKey, 'id' | 'name' | 'last_four'>[]> {
  const named = [...new Set(ids)].filter((id) => typeof id === 'string');
  if (named.length === 0) return [];
  return db.query('select id, name, last_four from api_keys where account_id = $1 and id = any($2)', [
    account_id,
    named,
  ]);
}

/** Tells whether programs use one of these keys: not the playground. */
export async function areOfPrograms(db: Queryable, account_id: string, ids: Iterable<string>): Promise<boolean> {
  const rows = await db.query(
    `select from api_keys where account_id = $1 and id = any($2) and kind = 'program' and playground_project is null limit 1`,
    [account_id, [...new Set(ids)]],
  );
  return rows.length > 0;
}

/** Counts the working keys of each project of an account. */
export async function countKeys(db: Queryable, account_id: string, now: Date): Promise<Map<string, number>> {
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    [works, now],
  ]);
  const rows = await db.query<{ project_id: string; keys: bigint }>(
    `select project_id, count(*) as keys from (select id from api_keys where ${text}) k
       join (${projectsOfKeys('$1')}) p on p.key_id = k.id group by project_id`,
    values,
  );
  return new Map(rows.map(({ project_id, keys }) => [project_id, Number(keys)]));
}

/** Tells whether a project has a key that works, beside the one by which its limited members use the playground. */
export async function hasProgramKey(
  db: Queryable,
  account_id: string,
  project_id: string,
  now: Date,
): Promise<boolean> {
  const page = await listKeys(db, { account_id, state: 'active', project_ids: [project_id], limit: 2 }, now);
  return page.keys.some(({ playground_project }) => playground_project === null);
}

/** Returns the working keys that have used the most of their month's limit, and at least `percent` of it. */
export async function keysNearLimit(
  db: Queryable,
  { account_id, project_ids, percent, limit }: Omit<KeyFilter, 'search' | 'state'> & { percent: number; limit: number },
  now: Date,
): Promise<{ id: string; name: string; used_percent: number }[]> {
  const { text, values } = conditionsOf([
    ['k.account_id = ?', account_id],
    ['used_percent >= ?', percent],
    ['(k.deleted_at is null or k.deleted_at > ?) and (k.expires_at is null or k.expires_at > ?)', now],
    [`k.id in (${keysOfProjects('$1', '?')})`, project_ids],
  ]);
  return db.query(
    `select k.id, k.name, used_percent::int as used_percent from (${budgetsNearLimit('$1', '$2', '$3')}) b
       join api_keys k on k.id = b.key_id where ${text} order by used_percent desc, k.id limit ${limit}`,
    values,
  );
}
