import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';

/** Holds of some runs, as far as they are known. */
type Estimates = {
  views: EstimateView[] | undefined;
  /** They are not those of the input as it stands now. */
  is_stale: boolean;
  error: Error | null;
  refetch: () => void;
};

export type Estimating = Omit<Estimates, 'views'> & { view: EstimateView | undefined };

/** Returns the hold of a run with this body: requested when typing pauses, cancelled when the body changes. */
export function useEstimate(path: `/${string}`, body: object): Estimating {
  const { views, ...rest } = useEstimates(path, [body]);
  return { ...rest, view: views?.[0] };
}

/** Returns the holds of several runs, in the order of their bodies. */
export function useEstimates(path: `/${string}`, bodies: readonly object[]): Estimates {
  const { account, base, may } = usePlace();
  const text = JSON.stringify(bodies);
  const [settled] = useDebouncedValue(text, 300);
  const query = useQuery({
    queryKey: [account.id, 'estimate', path, settled],
    queryFn: ({ signal }) => {
      const settled_bodies: object[] = JSON.parse(settled);
      return Promise.all(settled_bodies.map((body) => api.post<EstimateView>(`${base}${path}`, body, { signal })));
    },
    enabled: may('run'),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
    gcTime: 30_000,
  });
  const { data, error, isPlaceholderData, isPending, refetch } = query;
  return {
    views: data,
    is_stale: settled !== text || isPlaceholderData || isPending,
    error,
    refetch: () => void refetch(),
  };
}
