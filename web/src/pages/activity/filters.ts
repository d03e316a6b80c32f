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
  const { q, status, outcome, model, key, project, user, tag, error, http_status, from, to, sort } = search;
  return {
    of: tab,
    q,
    ...(tab === 'tasks' ? { status } : { outcome, http_status }),
    model,
    key,
    project,
    user,
    tag,
    error,
    ...Object.fromEntries(pairsOf(search).map((pair) => [`metadata[${pair.key}]`, pair.value])),
    sort: q !== undefined && sort === 'cost' ? undefined : sort,
    ...momentsOf({ from, to }),
  };
}

export const filter_labels = {
  tag: 'Tag',
  user: 'End user',
  error: 'Error',
  http_status: 'HTTP status',
} as const;

type ChosenLabel = { parameter: keyof typeof filter_labels | PairName; name: string; value: string };

/** Returns the filters of a list by what is said of a call. */
export function chosenLabels(tab: ActivityTab, search: LabelSearch): ChosenLabel[] {
  const { tag, user, error, http_status } = search;
  const values = { tag, user, error, http_status: tab === 'tasks' ? undefined : http_status };
  const labels = (['tag', 'user', 'error', 'http_status'] as const).flatMap((parameter): ChosenLabel[] => {
    const value = values[parameter];
    return value === undefined ? [] : [{ parameter, name: filter_labels[parameter], value }];
  });
  const pairs = pairsOf(search).map(({ name, key, value }): ChosenLabel => ({ parameter: name, name: key, value }));
  return [...labels, ...pairs];
}
