/**
 * SQL about the budgets of keys, for statements of the module that has the keys: a list of keys by their project cannot
 * carry the ids of a hundred thousand. Each takes placeholders such as `$1`. A key that shares a budget is in the same
 * project as the key that has it.
 */

/** Selects `key_id` of the keys that are in one of these projects now. `projects`: the placeholder of an array of ids. */
export function keysOfProjects(account: string, projects: string): string {
  return `select key_id from budgets where account_id = ${account} and coalesce(project_id, 'default') = any(${projects})`;
}

/** The keys of some projects in a filter of a list: their ids while they are few, else their projects. */
export type KeysOfProjects = { key_ids?: readonly string[]; project_ids?: readonly string[] };

/** Returns conditions on the `key_id` of a list whose first condition is `account_id = ?`. `key_id`: one key. */
export function keyConditions({ key_id, key_ids, project_ids }: KeysOfProjects & { key_id?: string }) {
  return [
    ['key_id = ?', key_id],
    ['key_id = any(?)', key_ids],
    [`key_id in (${keysOfProjects('$1', '?')})`, project_ids],
  ] as const;
}

/** Selects `key_id` and `project_id` of all keys of an account. */
export function projectsOfKeys(account: string): string {
  return `select key_id, coalesce(project_id, 'default') as project_id from budgets where account_id = ${account}`;
}

/** Selects `key_id` and `used_percent` of the keys whose budget is used by so much of its limit, held money included. */
export function budgetsNearLimit(account: string, percent: string, now: string): string {
  return `select own.key_id, used_percent
    from (select r.key_id, least(999, (s.spent + r.held) * 100 / r.limit_month) as used_percent
            from budgets r cross join lateral (select case when r.month < month_of(${now}) then 0 else r.spent end as spent) s
           where r.account_id = ${account} and r.limit_month > 0
             and (s.spent + r.held) * 100 >= r.limit_month * ${percent}) root
    join budgets own on own.account_id = ${account} and coalesce(own.shares, own.key_id) = root.key_id`;
}
