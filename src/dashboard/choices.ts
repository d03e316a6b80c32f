import { invalidField } from '../errors.ts';
import { findKeys, listKeys, type KeyFilter } from '../accounts/key-list.ts';
import { keyState, type ApiKey } from '../accounts/keys.ts';
import { projectNames } from '../accounts/projects.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { oneOf } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { keysInProjects } from '../money/ledger.ts';
import { readSearch } from './keys.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { seesProject } from '../accounts/project-scope.ts';
import type { KeyChoice, KeyChoices } from './views/keys.ts';

/** The parts of the app that choices take. */
type Parts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

export type Choices = {
  models: { id: string; name: string }[];
  projects: { id: string; name: string }[];
};

/** Choices for the filters of lists: models by id, projects by name. */
export const get_choices = account_endpoint('GET', '/choices', 'read', readChoices, { limited: 'own' });

async function readChoices(app: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const listed = [...app.catalog.current.models.values()].filter(({ hidden }) => !hidden);
  const models = listed.map(({ id }) => ({ id, name: id }));
  const names = [...(await projectNames(app.db, account.id))];
  const projects = names.filter(([id]) => seesProject(scope, id)).map(([id, name]) => ({ id, name }));
  const choices: Choices = { models, projects };
  return { status: 200, body: choices };
}

const choices_max = 25;
const chosen_max = 100;

const text = { type: 'string' };
const filters = {
  search: { description: 'A part of the name, the last four characters, or the id.', schema: text },
  state: { description: 'active: only keys that work.', schema: { type: 'string', enum: ['active'] } },
  chosen: { description: 'Ids of keys whose names are needed in any case, with commas.', schema: text },
};

/** Keys to choose from, the first few that fit: an account may have a hundred thousand. */
export const get_key_choices = account_endpoint('GET', '/choices/keys', 'read', readKeyChoices, {
  query: filters,
  limited: 'own',
});

async function readKeyChoices({ db, clock }: Parts, { account, scope, query }: AccountCall): Promise<Answer> {
  const now = new Date(clock.now());
  const filter = { account_id: account.id, search: readSearch(query), project_ids: scope?.project_ids };
  const only_active = oneOf(query, 'state', ['active']) !== undefined;
  const list = (state: KeyFilter['state'], limit: number) => listKeys(db, { ...filter, state, limit }, now);
  const first = await list(only_active || filter.search === undefined ? 'active' : undefined, choices_max);
  const room = choices_max - first.keys.length;
  const has_room = !only_active && filter.search === undefined && !first.has_more;
  const ended = has_room ? await list('ended', room) : { keys: [], has_more: false };
  const works = (key: ApiKey) => Number(['active', 'ending'].includes(keyState(key, now.getTime())));
  const keys = [...first.keys, ...ended.keys].toSorted((a, b) => works(b) - works(a));
  const view: KeyChoices = {
    data: keys.map((key) => choiceOf(key, now)),
    chosen: (await readChosen(db, { account, scope }, query)).map((key) => choiceOf(key, now)),
    has_more: first.has_more || ended.has_more,
  };
  return { status: 200, body: view };
}

function choiceOf(key: ApiKey, now: Date): KeyChoice {
  const { id, name } = key;
  const state = keyState(key, now.getTime());
  return { id, name: state === 'active' ? name : `${name} (${state})` };
}

async function readChosen(
  db: Db,
  { account, scope }: Pick<AccountCall, 'account' | 'scope'>,
  query: Query,
): Promise<ApiKey[]> {
  const ids = query.get('chosen')?.split(',') ?? [];
  if (ids.length > chosen_max) throw invalidField('chosen', `chosen must have at most ${chosen_max} ids.`);
  const valid = ids.filter((id) => isId('key', id));
  const seen = scope ? await keysInProjects(db, scope, valid) : valid;
  return findKeys(db, account.id, seen);
}
