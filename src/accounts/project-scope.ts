import type { Queryable } from '../db/database.ts';
import type { BudgetState } from '../money/account-budgets.ts';
import type { KeysOfProjects } from '../money/key-budgets.ts';
import { keysInProjects, someKeysInProjects } from '../money/ledger.ts';

/** The part of an account that a member sees who is limited to projects, or a key of theirs. Tasks and calls are of the project that their key is in now. */
export type ProjectScope = { account_id: string; project_ids: readonly string[] };

/** Tells whether something that this key made is in sight; without a scope, everything is. */
export async function seesKey(db: Queryable, scope: ProjectScope | undefined, key_id: string): Promise<boolean> {
  return scope === undefined || (await keysInProjects(db, scope, [key_id])).has(key_id);
}

/** Tells whether this project is in sight. */
export function seesProject(scope: ProjectScope | undefined, project_id: string): boolean {
  return scope === undefined || scope.project_ids.includes(project_id);
}

/** Returns the projects in sight that a list is about: `project`, or without it all; undefined: no project is left out. */
export function projectsInSight(scope: ProjectScope | undefined, project?: string): readonly string[] | undefined {
  if (project === undefined) return scope?.project_ids;
  return seesProject(scope, project) ? [project] : [];
}

/** An index leads to the rows of so few keys; the ids of 100,000 would be 3 MB in each query. */
const key_ids_max = 500;

/** Returns the filter of lists of tasks and calls by their keys. `project`: the one that the list is about. */
export async function keysInSight(
  db: Queryable,
  account_id: string,
  scope: ProjectScope | undefined,
  project?: string,
): Promise<KeysOfProjects> {
  const project_ids = projectsInSight(scope, project);
  if (project_ids === undefined) return {};
  const key_ids = await someKeysInProjects(db, { account_id, project_ids, limit: key_ids_max + 1 });
  return key_ids.length > key_ids_max ? { project_ids } : { key_ids };
}

/** Returns those of an account's budgets that are of a project or a key in sight. */
export async function budgetsInSight(
  db: Queryable,
  scope: ProjectScope | undefined,
  budgets: readonly BudgetState[],
): Promise<readonly BudgetState[]> {
  if (!scope) return budgets;
  const of_keys = budgets.flatMap((budget) => (budget.scope === 'key' && budget.subject ? [budget.subject] : []));
  const keys = await keysInProjects(db, scope, of_keys);
  return budgets.filter(({ scope: about, subject }) => {
    if (subject === null) return false;
    return (about === 'project' && seesProject(scope, subject)) || (about === 'key' && keys.has(subject));
  });
}
