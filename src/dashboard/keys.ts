import { KeyRuleError } from '../accounts/key-rule-error.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { readContentRules } from '../accounts/content-rules.ts';
import {
  no_rules,
  readAddresses,
  readExpiry,
  readRequestsPerMinute,
  readScopes,
  rule_names,
  type KeyRules,
} from '../accounts/key-rules.ts';
import { key_states, listKeys, type KeyFilter } from '../accounts/key-list.ts';
import {
  changeKeyRules,
  deleteKey,
  findKey,
  isUnused,
  keyState,
  renameKey,
  rotateKey,
  type ApiKey,
} from '../accounts/keys.ts';
import { createKeyIn, default_project, moveKey, projectNames } from '../accounts/projects.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { readKeyModels } from '../catalog/key-models.ts';
import { keepDaysMax } from '../catalog/settings.ts';
import { deleteContents, shortenContents } from '../contents/stored.ts';
import type { Account } from '../accounts/accounts.ts';
import type { Person } from '../accounts/person.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { oneOf } from '../http/query.ts';
import { tellKeyChange } from '../app/channels.ts';
import { ApiError, invalidField } from '../errors.ts';
import { isId } from '../lib/ids.ts';
import { budgetsOf, nextMonth, setLimit, type Budget } from '../money/ledger.ts';
import { costView, exact, parseMoney, type Money } from '../money/money.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { projectsInSight, seesKey, seesProject, type ProjectScope } from '../accounts/project-scope.ts';
import type { KeyPageView, KeysView, KeyView, NewKeyView } from './views/keys.ts';

/** The parts of the app that showing a key takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

type ListParts = Parts & { readonly catalog: CatalogHolder };

const name_length_max = 100;
const project_length_max = 60;
const search_length_max = 200;
const hour_ms = 3_600_000;
const page_size = 50;

const text = { type: 'string' };

/** The query of a list of keys. */
export const key_filters = {
  search: { description: 'A part of the name, the last four characters, or the id.', schema: text },
  state: { description: 'Only keys of this state.', schema: { type: 'string', enum: [...key_states] } },
  project: { description: 'Only keys that are in this project.', schema: text },
  after: { description: 'After this one in the list.', schema: text },
};

/** The account's keys in pages, newest first, with what they have spent this month. */
export const list_keys = account_endpoint('GET', '/keys', 'read', listInSight, { query: key_filters, limited: 'own' });

async function listInSight(app: ListParts, { account, scope, query }: AccountCall): Promise<Answer> {
  const now = new Date(app.clock.now());
  const page = await readKeyPage(app, account, query, scope);
  const any = { account_id: account.id, project_ids: scope?.project_ids, limit: 1 };
  const has_any = page.data.length > 0 || (await listKeys(app.db, any, now)).keys.length > 0;
  const view: KeysView = {
    ...page,
    has_any,
    resets_at: nextMonth(now).toISOString(),
    content_days_max: keepDaysMax(app.catalog.current.settings),
  };
  return { status: 200, body: view };
}

/** The page of an account's keys that a query asks for. Throws ApiError 400 for a mistake in it. */
export async function readKeyPage(
  { db, clock }: Parts,
  account: Account,
  query: Query,
  scope?: ProjectScope,
): Promise<KeyPageView> {
  const now = new Date(clock.now());
  const after = query.get('after');
  if (after !== undefined && !isId('key', after)) throw invalidField('after', 'after must be the id of a key.');
  const filter: KeyFilter = {
    account_id: account.id,
    search: readSearch(query),
    state: oneOf(query, 'state', key_states),
    project_ids: projectsInSight(scope, query.get('project')),
  };
  const { keys, has_more } = await listKeys(db, { ...filter, after, limit: page_size }, now);
  const ids = keys.map(({ id }) => id);
  const [budgets, projects] = await Promise.all([budgetsOf(db, account.id, now, ids), projectNames(db, account.id)]);
  const by_id = new Map(budgets.map((budget) => [budget.key_id, budget]));
  const place = { projects, currency: account.currency, now };
  return { data: keys.map((key) => renderKey(key, by_id.get(key.id), place)), has_more };
}

/** Reads the words to search keys for. */
export function readSearch(query: Query): string | undefined {
  const search = query.get('search');
  if (search === undefined || search.length <= search_length_max) return search;
  throw invalidField('search', `search must have at most ${search_length_max} characters.`);
}

/** A key as its account and operators see it. */
function renderKey(
  key: ApiKey,
  budget: Budget | undefined,
  { projects, currency, now }: { projects: ReadonlyMap<string, string>; currency: string; now: Date },
): KeyView {
  const { limit_month = null, spent = 0n, held = 0n, project_id = default_project.id } = budget ?? {};
  return {
    id: key.id,
    name: key.name,
    kind: key.kind,
    project: { id: project_id, name: projects.get(project_id) ?? project_id },
    shown_as: `${key.prefix}…${key.last_four}`,
    created_at: key.created_at.toISOString(),
    ends_at: key.deleted_at?.toISOString() ?? null,
    state: keyState(key, now.getTime()),
    expires_at: key.expires_at?.toISOString() ?? null,
    scopes: key.scopes && [...key.scopes],
    addresses: key.addresses && [...key.addresses],
    models: key.models && [...key.models],
    is_limited: key.is_limited,
    requests_per_minute: key.requests_per_minute,
    last_used_at: key.last_used_at?.toISOString() ?? null,
    use_noted_since: key.use_noted_since?.toISOString() ?? null,
    is_unused: isUnused(key, now),
    log_content: contentView(key.log_content),
    limit: limit_month === null ? null : costView(limit_month, currency),
    spent: costView(spent, currency),
    held: costView(held, currency),
    used_percent: usedPercent(spent + held, limit_month),
  };
}

function contentView(rules: KeyRules['log_content']): KeyView['log_content'] {
  return rules && { keep_days: rules.keep_days, redact: [...rules.redact], patterns: [...rules.patterns] };
}

function usedPercent(used: Money, limit: Money | null): number | null {
  if (limit === null) return null;
  if (limit === 0n) return 100;
  const percent = (used * 100n) / limit;
  return Number(percent > 999n ? 999n : percent);
}

async function renderOne({ db, clock }: Parts, { account }: AccountCall, key: ApiKey): Promise<KeyView> {
  const now = new Date(clock.now());
  const budgets = await budgetsOf(db, account.id, now, [key.id]);
  return renderKey(key, budgets[0], { projects: await projectNames(db, account.id), currency: account.currency, now });
}

/** Makes a key; the answer is the only place where it is ever told. */
export const create_key = account_endpoint(
  'POST',
  '/keys',
  'keys',
  async (app, call) => {
    const { account, body, person } = call;
    const name = readBodyFields(body).text('name', name_length_max);
    const limit_month = readLimit(body) ?? null;
    const now = new Date(app.clock.now());
    const rules = readRules(app, body, no_rules);
    const project = readProject(call) ?? default_project.id;
    if (!seesProject(call.scope, project)) throw noProject();
    const member_id = memberOf(person);
    const new_key = {
      account_id: account.id,
      name,
      limit_month,
      rules,
      member_id,
      is_limited: call.scope !== undefined,
    };
    const created = await createKeyIn(app.db, project, new_key, now);
    if (!created) throw noProject();
    const limit = limitText(limit_month);
    await auditAction(app, call, 'key.create', created.key.id, { name, limit, project, ...rulesNote(no_rules, rules) });
    return secretAnswer(app, call, created.key, created.text);
  },
  { needs_proof: true, limited: 'own' },
);

/** A new name, a new limit or other rules; the limit counts from the next hold on. `delete_content` deletes what is stored. */
export const change_key = account_endpoint(
  'PATCH',
  '/keys/{id}',
  'keys',
  async (app, call) => {
    const name = readBodyFields(call.body).optionalText('name', name_length_max);
    const limit_month = readLimit(call.body);
    const project_id = readProject(call);
    const key = await findOwn(app.db, call);
    const rules = readRules(app, call.body, key);
    const named = rule_names.filter((rule) => call.body?.[rule] !== undefined);
    refuseForPlayground(key, rules);
    const deletes = call.body?.['delete_content'] === true;
    if (project_id !== undefined && key.playground_project !== null && project_id !== key.playground_project)
      throw new ApiError('conflict', "The playground's key cannot be moved to another project.");
    if (keyState(key, app.clock.now()) === 'deleted') throw new ApiError('conflict', 'This key is deleted.');
    const { account_id, id: key_id } = key;
    if (project_id !== undefined) done(await moveKey(app.db, { account_id, key_id, project_id }));
    if (name !== undefined) await renameKey(app.db, key.id, name);
    if (limit_month !== undefined) await setLimit(app.db, key.id, limit_month);
    await changeKeyRules(app.db, key.id, rules, named);
    const contents_deleted = deletes ? await deleteContents(app.db, contentsOf(key)) : undefined;
    if (rules.log_content && named.includes('log_content'))
      await shortenContents(app.db, contentsOf(key), rules.log_content);
    await auditAction(app, call, 'key.change', key.id, {
      ...(name !== undefined && { name, name_before: key.name }),
      ...(limit_month !== undefined && { limit: limitText(limit_month) }),
      ...(project_id !== undefined && { project: project_id }),
      ...rulesNote(key, rules),
      ...(contents_deleted !== undefined && { contents_deleted }),
    });
    tellKeyChange(app); // its name is remembered with it
    return { status: 200, body: await renderOne(app, call, await findOwn(app.db, call)) };
  },
  { needs_proof: true, limited: 'own' },
);

const program_rules = ['expires_at', 'scopes', 'addresses', 'models', 'requests_per_minute'] as const;

/** The playground is for people, who see all models and whose pages ask as they need: it obeys none of these rules. */
function refuseForPlayground({ kind }: ApiKey, rules: KeyRules): void {
  if (kind !== 'playground') return;
  const name = program_rules.find((rule) => rules[rule] !== null);
  if (name !== undefined)
    throw invalidField(name, `${name} is a rule for keys of programs: the playground's key has none.`);
}

function contentsOf({ id, account_id }: ApiKey): { account_id: string; api_key_id: string } {
  return { account_id, api_key_id: id };
}

/** The member that has seen the text of a key: an operator is none. */
function memberOf({ role, user }: Person): string | null {
  return role === 'operator' ? null : user.id;
}

/** A new key in the place of an old one, which still works for 0 or 24 hours. */
export const rotate_key = account_endpoint(
  'POST',
  '/keys/{id}/rotate',
  'keys',
  async (app, call) => {
    const hours = readBodyFields(call.body).oneOf('overlap_hours', [0, 24]);
    const { id, kind } = await findOwn(app.db, call);
    if (kind === 'playground') {
      throw new ApiError('conflict', 'The key of the playground is never shown: there is nothing to rotate.');
    }
    const how = { overlap_ms: hours * hour_ms, limits: call.scope !== undefined, member_id: memberOf(call.person) };
    const rotated = await rotateKey(app.db, id, how, new Date(app.clock.now()));
    if (!rotated) throw new ApiError('conflict', 'This key is deleted, or has been rotated.');
    await auditAction(app, call, 'key.rotate', id, { new_key: rotated.key.id, overlap_hours: hours });
    tellKeyChange(app);
    return secretAnswer(app, call, rotated.key, rotated.text);
  },
  { needs_proof: true, limited: 'own' },
);

/** From within a second on, no node takes it any more. */
export const delete_key = account_endpoint(
  'DELETE',
  '/keys/{id}',
  'keys',
  async (app, call) => {
    const { id, name } = await findOwn(app.db, call);
    if (!(await deleteKey(app.db, id, new Date(app.clock.now()))))
      throw new ApiError('conflict', 'This key is deleted.');
    await auditAction(app, call, 'key.delete', id, { name });
    tellKeyChange(app);
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true, limited: 'own' },
);

/** Returns undefined if the body names none. Throws ApiError for one that is out of sight. */
function readProject({ body, scope }: AccountCall): string | undefined {
  const project = readBodyFields(body).optionalText('project', project_length_max);
  if (project !== undefined && !seesProject(scope, project)) throw noProject();
  return project;
}

function noProject(): ApiError {
  return invalidField('project', 'project must be the id of a project of this account that is not archived.');
}

/** Throws ApiError for a key that was not moved. */
function done(moved: boolean | 'limited'): void {
  if (moved === true) return;
  if (moved === false) throw noProject();
  throw new ApiError(
    'conflict',
    'This key, or a rotated one that still works, is limited to its project and cannot be moved. Create a key in the other project, and delete this one.',
    { param: 'project' },
  );
}

async function secretAnswer(app: Parts, call: AccountCall, key: ApiKey, secret: string): Promise<Answer> {
  const view: NewKeyView = { key: await renderOne(app, call, key), secret };
  return { status: 201, body: view };
}

async function findOwn(db: Db, { account, params, scope }: AccountCall): Promise<ApiKey> {
  const { id = '' } = params;
  const key = isId('key', id) ? await findKey(db, id, account.id) : undefined;
  if (!key || !(await seesKey(db, scope, id))) throw new ApiError('not_found', 'There is no such key.');
  return key;
}

type RuleParts = { readonly clock: Clock; readonly catalog: CatalogHolder };

/** The rules of a body, in the place of those that the key has; what the body does not name stays. */
function readRules(app: RuleParts, body: Record<string, unknown> | undefined, rules: KeyRules): KeyRules {
  const now = new Date(app.clock.now());
  const read = <T>(name: keyof KeyRules, reader: (value: unknown) => T, present: T): T => {
    if (body?.[name] === undefined) return present;
    try {
      return reader(body[name]);
    } catch (error) {
      if (error instanceof KeyRuleError) throw invalidField(name, `${name} ${error.message}`);
      throw error;
    }
  };
  return {
    expires_at: read('expires_at', (value) => readExpiry(value, now), rules.expires_at),
    scopes: read('scopes', readScopes, rules.scopes),
    addresses: read('addresses', readAddresses, rules.addresses),
    models: read('models', (value) => readKeyModels(app.catalog.current, value, rules.models), rules.models),
    requests_per_minute: read('requests_per_minute', readRequestsPerMinute, rules.requests_per_minute),
    log_content: read(
      'log_content',
      (value) => readContentRules(value, keepDaysMax(app.catalog.current.settings)),
      rules.log_content,
    ),
  };
}

/** Returns the rules that differ between two sets, for the audit log. */
function rulesNote(before: KeyRules, after: KeyRules): Record<string, unknown> {
  const changed = rule_names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return Object.fromEntries(changed.map((name) => [name, after[name]]));
}

/** Reads the limit of a key: undefined if the body has none, null for no limit. */
export function readLimit(body: Record<string, unknown> | undefined): Money | null | undefined {
  const value = body?.['limit'];
  if (value === undefined || value === null) return value;
  const limit = typeof value === 'string' ? parseMoney(value.trim()) : undefined;
  if (limit !== undefined && limit >= 0n) return limit;
  throw invalidField('limit', 'limit must be an amount such as "25" or "12.50", zero or more; null for no limit.');
}

export function limitText(limit: Money | null): string | null {
  return limit === null ? null : exact(limit);
}
