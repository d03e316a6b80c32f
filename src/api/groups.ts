import { ApiError } from '../errors.ts';
import { isPair, pairName, type UsageGroup } from '../money/groups.ts';
import type { RefusalGroup } from '../money/refusals.ts';

/** `group_by` of reports, and the names of their rows. */

/** `from` and `to` of a report, in the reference. */
export const range_query = {
  from: { description: 'Inclusive, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
  to: { description: 'Exclusive, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
};

/** Returns `group_by` of a report whose groups have these names, in the reference. */
export function groupQuery(names: string, example: string) {
  return {
    group_by: {
      description: `One or several of ${names}, joined by commas.`,
      schema: { type: 'string' },
      example,
    },
  };
}

/** Reads `group_by`: names that `groupOf` knows, with commas between them, none twice. Throws ApiError 400. */
export function readGroups<Each>(text: string, groupOf: (name: string) => Each | undefined, names: string): Each[] {
  const groups = text.split(',').map(groupOf);
  const chosen = groups.filter((group) => group !== undefined);
  if (chosen.length === groups.length && new Set(chosen).size === chosen.length) return chosen;
  throw new ApiError('invalid_request', `group_by must be one or several of ${names}, joined by commas.`, {
    param: 'group_by',
  });
}

type Group = UsageGroup | RefusalGroup | 'route';

/** Returns the names of a row as callers see them: pairs of metadata are together, and null stands for no label. */
export function rowNames<Each extends Group>(
  groups: readonly Each[],
  nameOf: (group: Each, index: number) => string | null | undefined,
): object {
  const named = groups.map((group, index): [Each, string | null] => [group, nameOf(group, index) || null]);
  const pairs = named.flatMap(([group, name]) => (isPair(group) ? [[pairName(group), name] as const] : []));
  return {
    ...Object.fromEntries(named.filter(([group]) => !isPair(group))),
    ...(pairs.length > 0 && { metadata: Object.fromEntries(pairs) }),
  };
}
