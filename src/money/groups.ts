/** Groups by which charges and calls are summed in reports. */

/** Groups that the ledger itself has, as columns of a source with `at`, `model`, `key_id`, `project_id` and `kind`. */
const ledger_columns = {
  hour: `to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
  day: `to_char(at at time zone 'UTC', 'YYYY-MM-DD')`,
  model: 'model',
  key: 'key_id',
  project: 'project_id',
  modality: 'kind',
} as const;

export type LedgerGroup = keyof typeof ledger_columns;

const ledger_groups = ['hour', 'day', 'model', 'key', 'project', 'modality'] as const satisfies readonly LedgerGroup[];

/** Names that the caller has put on a call or a task: its end user, each of its tags, or one pair of its metadata. */
export type LabelGroup = 'user' | 'tag' | `metadata.${string}`;

export type UsageGroup = LedgerGroup | LabelGroup;

/** Tells whether this is a label, which a record has and the ledger has not. */
export function isLabel(group: UsageGroup): group is LabelGroup {
  return !Object.hasOwn(ledger_columns, group);
}

const pair_prefix = 'metadata.';
const pair_name_length_max = 64;

/** Tells whether this is a pair of metadata. */
export function isPair(group: string): group is `metadata.${string}` {
  return group.startsWith(pair_prefix);
}

/** Returns `team` of `metadata.team`. */
export function pairName(pair: `metadata.${string}`): string {
  return pair.slice(pair_prefix.length);
}

/** Returns the group of this name, as `day` or `metadata.team`; undefined if there is none. */
export function groupNamed(name: string): UsageGroup | undefined {
  if (isPair(name)) {
    const pair = pairName(name);
    const is_name = pair !== '' && pair.length <= pair_name_length_max && !pair.includes('\0') && pair.isWellFormed();
    return is_name ? name : undefined;
  }
  if (name === 'user' || name === 'tag') return name;
  return ledger_groups.find((group) => group === name);
}

/** Adds a value to those of a statement, and returns its placeholder. */
export type Bind = (value: unknown) => string;

/**
 * Returns the column of a group. A source of labels has `end_user`, `metadata` and `tag` too; an empty text stands where
 * there is no such label, so that rows of the same names can be joined.
 */
export function columnOf(group: UsageGroup, bind: Bind): string {
  if (group === 'user') return "coalesce(end_user, '')";
  if (group === 'tag') return "coalesce(tag, '')";
  if (!isLabel(group)) return ledger_columns[group];
  return `coalesce(metadata ->> ${bind(pairName(group))}::text, '')`;
}
