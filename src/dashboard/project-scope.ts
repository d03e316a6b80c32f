import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { budgetsOf } from '../money/ledger.ts';

/** The part of an account that a member sees who is limited to projects. Tasks and calls are of the project that their key is in now. */
export type ProjectScope = { project_ids: readonly string[]; key_ids: readonly string[] };

/** Returns the scope of these projects of an account. */
export async function scopeOf(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  account_id: string,
  project_ids: readonly string[],
): Promise<ProjectScope> {
  const budgets = await budgetsOf(db, account_id, new Date(clock.now()));
  const key_ids = budgets.flatMap(({ key_id, project_id }) => (project_ids.includes(project_id) ? [key_id] : []));
  return { project_ids, key_ids };
}

/** Tells whether something that this key made is in sight; without a scope, everything is. */
export function seesKey(scope: ProjectScope | undefined, key_id: string): boolean {
  return scope === undefined || scope.key_ids.includes(key_id);
}

/** Tells whether this project is in sight. */
export function seesProject(scope: ProjectScope | undefined, project_id: string): boolean {
  return scope === undefined || scope.project_ids.includes(project_id);
}

/** Returns the filter of lists of tasks and calls by their keys; `key_ids`: those that the list is about anyway. */
export function keysInSight(
  scope: ProjectScope | undefined,
  key_ids?: readonly string[],
): { key_ids?: readonly string[] } {
  if (key_ids === undefined) return scope === undefined ? {} : { key_ids: scope.key_ids };
  return { key_ids: key_ids.filter((id) => seesKey(scope, id)) };
}
