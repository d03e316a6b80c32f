import type { SpeedGrouping } from '../../../../src/dashboard/views/speed.ts';
import type { UsageGrouping } from '../../../../src/dashboard/views/usage.ts';

/** Groups of the reports of usage and of speed, and their names. */
export type Grouping = UsageGrouping | SpeedGrouping;

const labels = {
  model: 'Model',
  key: 'Key',
  project: 'Project',
  kind: 'Kind',
  route: 'Route',
  user: 'User',
  tag: 'Tag',
} as const;

const pair_prefix = 'metadata.';
const pair_name_length_max = 64;

type Pair = `metadata.${string}`;

export function isPair(group: string): group is Pair {
  return group.startsWith(pair_prefix);
}

/** Returns the choices of a group: these, the names of metadata in use, and the one in the address. */
export function groupChoices(groups: readonly Grouping[], pairs: readonly string[], chosen: Grouping) {
  const all = new Set<Grouping>([...groups, ...pairs.map((name): Pair => `${pair_prefix}${name}`), chosen]);
  return [...all].map((value) => ({ value, label: groupName(value) }));
}

/** `Model`, and `Metadata: team` for a pair. */
export function groupName(group: Grouping): string {
  return isPair(group) ? `Metadata: ${group.slice(pair_prefix.length)}` : labels[group];
}

/** The same within a sentence. */
export function groupPhrase(group: Grouping): string {
  return isPair(group) ? group.slice(pair_prefix.length) : labels[group].toLowerCase();
}

/** A charge may have no label: nobody named it, or its record is no longer kept. */
export function nameOf({ id, name }: { id: string; name: string }, group: Grouping): string {
  return id === '' ? `No ${groupPhrase(group)}` : name;
}

/** Reads a group of an address or a choice: one of these, or a pair; undefined if it is none. */
export function readGroup<Each extends Grouping>(value: unknown, groups: readonly Each[]): Each | Pair | undefined {
  if (typeof value !== 'string') return undefined;
  if (isPair(value))
    return value.length > pair_prefix.length && value.length <= pair_prefix.length + pair_name_length_max
      ? value
      : undefined;
  return groups.find((group) => group === value);
}
