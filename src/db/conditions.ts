/** The conditions of a statement whose filters may be absent, and its values. */
export type Conditions = {
  /** As `account_id = $1 and id < $2`. */
  readonly text: string;
  readonly values: readonly unknown[];
};

/**
 * Writes the conditions of the filters that there are: pairs of a condition, with `?` wherever its value stands, and
 * the value; undefined leaves the condition out. A statement that names only these lets PostgreSQL choose the index
 * that fits them, where `($2 is null or model = $2)` fits none.
 */
export function conditionsOf(filters: readonly (readonly [condition: string, value: unknown])[]): Conditions {
  const present = filters.filter(([, value]) => value !== undefined);
  return {
    text: present.map(([condition], index) => condition.replaceAll('?', `$${index + 1}`)).join(' and '),
    values: present.map(([, value]) => value),
  };
}
