import { useQuery } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { pairsOf, type ActivitySearch, type ActivityTab, type LabelSearch, type PairName } from './search.ts';

type Named = { id: string; name: string };

/** Returns the choices for the filters of lists. */
export function useChoices() {
  const { account, base } = usePlace();
  const choices = useQuery({
    queryKey: [account.id, 'choices'],
    queryFn: ({ signal }) => api.get<{ models: Named[]; projects: Named[] }>(`${base}/choices`, { signal }),
    staleTime: 60_000,
  });
  const toChoice = ({ id, name }: Named) => ({ value: id, label: name });
  const { models = [], projects = [] } = choices.data ?? {};
  return { models: models.map(toChoice), projects: projects.map(toChoice) };
}

/** A day of the address as the moment at which it begins, and the one at which the next begins. */
export function momentsOf({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  const day = /^\d{4}-\d{2}-\d{2}$/;
  const next = to !== undefined && day.test(to) ? new Date(Date.parse(`${to}T00:00:00Z`) + 86_400_000) : undefined;
  return {
    from: from !== undefined && day.test(from) ? `${from}T00:00:00.000Z` : undefined,
    to: next && !Number.isNaN(next.getTime()) ? next.toISOString() : undefined,
  };
}

/** The filters of a list as the service takes them; those of other lists are left out. */
export function filterOf(tab: ActivityTab, search: ActivitySearch) {
  const { q, status, outcome, model, key, project, from, to, sort } = search;
  return {
    of: tab,
    q,
    ...(tab === 'tasks' ? { status } : { outcome }),
    model,
    key,
    project,
    ...labelQuery(search, labelsOf(tab)),
    sort: q !== undefined && sort === 'cost' ? undefined : sort,
    ...momentsOf({ from, to }),
  };
}

/** Filters by what is said of a call, and their names. */
export const filter_labels = {
  tag: 'Tag',
  user: 'End user',
  error: 'Error',
  http_status: 'HTTP status',
  metadata: 'Metadata',
} as const;

export type LabelName = keyof typeof filter_labels;

const label_names: readonly LabelName[] = ['tag', 'user', 'error', 'http_status', 'metadata'];

/** Returns the filters by labels that a list of these calls has: generations have no status of HTTP. */
export function labelsOf(tab: ActivityTab): readonly LabelName[] {
  return label_names.filter((name) => name !== 'http_status' || tab !== 'tasks');
}

export type ChosenLabel = { parameter: Exclude<LabelName, 'metadata'> | PairName; name: string; value: string };

/** Returns the filters by labels in an address, of those that a list has. */
export function chosenLabels(search: LabelSearch, names: readonly LabelName[]): ChosenLabel[] {
  return names.flatMap((name): ChosenLabel[] => {
    if (name === 'metadata') {
      return pairsOf(search).map((pair) => ({ parameter: pair.name, name: pair.key, value: pair.value }));
    }
    const value = search[name];
    return value === undefined ? [] : [{ parameter: name, name: filter_labels[name], value }];
  });
}

/** Returns the filters by labels as the service takes them. */
export function labelQuery(search: LabelSearch, names: readonly LabelName[]): Record<string, string> {
  const labels = chosenLabels(search, names);
  return Object.fromEntries(
    labels.map(({ parameter, name, value }) => [
      parameter.startsWith('metadata.') ? `metadata[${name}]` : parameter,
      value,
    ]),
  );
}

/** Returns the change that removes all filters by labels. */
export function withoutLabels(search: LabelSearch): LabelSearch {
  return Object.fromEntries(chosenLabels(search, label_names).map(({ parameter }) => [parameter, undefined]));
}
