import { limitOfKey } from '../catalog/key-limits.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { Authenticator, Caller } from '../accounts/authenticate.ts';
import { findPlaygroundKey } from '../accounts/keys.ts';
import { default_project, listProjects, openPlaygroundKeyIn } from '../accounts/projects.ts';
import { ApiError } from '../errors.ts';
import type { WindowName, Windows } from '../limits/window.ts';
import { windowError } from '../http/window-headers.ts';
import { million } from '../money/money.ts';
import type { AccountCall } from './page.ts';
import { seesProject, type ProjectScope } from '../accounts/project-scope.ts';

/** Monthly limit of the playground until somebody sets another one, so that a slip of the mouse stays cheap. */
const limit_month = 5n * million;

/**
 * The caller for whom the playground runs models: a key of the account like any other, in its lists, its limits and
 * its usage, whose text nobody was ever told. Made when it is first needed. Members who are limited to projects have one
 * in each project, and use that of their first. Throws ApiError 403 for whoever has no project.
 */
export async function playgroundCaller(
  { db, clock }: { db: Db; clock: Clock },
  { account, scope }: Pick<AccountCall, 'account' | 'scope'>,
): Promise<Caller> {
  const { id, name, currency, status, keeps_responses } = account;
  const project = await playgroundProject(db, id, scope);
  if (project === undefined) throw noProject();
  const own = { playground_project: project, is_limited: true };
  const new_key = { account_id: id, name: 'Playground', limit_month, ...(project !== null && own) };
  const key =
    (await findPlaygroundKey(db, id, project)) ??
    (await openPlaygroundKeyIn(db, project ?? default_project.id, new_key, new Date(clock.now())));
  if (!key) throw noProject(); // archived in this moment
  const { id: key_id, name: key_name, log_content } = key;
  return {
    account: { id, name, currency, status, keeps_responses },
    key: {
      id: key_id,
      name: key_name,
      ...(log_content && { log_content }),
      ...(scope && { is_limited: true }),
    },
  };
}

function noProject(): ApiError {
  return new ApiError('forbidden', 'You have no project of this account. Ask an owner for one.');
}

/** Returns the project whose key the playground uses: null for that of the account, undefined for none. */
export async function playgroundProject(
  db: Db,
  account_id: string,
  scope: ProjectScope | undefined,
): Promise<string | null | undefined> {
  if (!scope) return null;
  const projects = await listProjects(db, account_id);
  const active = [default_project.id, ...projects.filter(({ archived_at }) => !archived_at).map(({ id }) => id)];
  return active.find((id) => seesProject(scope, id));
}

/** The parts of the app that counting a request takes. */
type WindowParts = {
  readonly catalog: CatalogHolder;
  readonly windows: Windows;
  readonly authenticator: Pick<Authenticator, 'noteUse'>;
};

/** Counts a request of the playground as one of its key is counted on `/v1`. Throws ApiError 429. */
export async function takeWindow(
  { catalog, windows, authenticator }: WindowParts,
  caller: Caller,
  window: WindowName,
): Promise<void> {
  const limit = limitOfKey(catalog.current.settings, caller, window);
  const taken = await windows.take(window, caller.key.id, limit, performance.now());
  if (!taken.ok) throw windowError(window, taken, caller.key);
  if (window !== 'other') authenticator.noteUse(caller.key.id); // estimates are no use
}
