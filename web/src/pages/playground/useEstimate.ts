import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import type { Estimating } from './RunLine.tsx';

/** Returns the hold of a run with this body: requested when typing pauses, cancelled when the body changes. */
export function useEstimate(path: `/${string}`, body: object): Estimating {
  const { account, base, may } = usePlace();
  const text = JSON.stringify(body);
  const [settled] = useDebouncedValue(text, 300);
  const query = useQuery({
    queryKey: [account.id, 'estimate', path, settled],
    queryFn: ({ signal }) => api.post<EstimateView>(`${base}${path}`, JSON.parse(settled), { signal }),
    enabled: may('run'),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
    gcTime: 30_000,
  });
  const { data, error, isPlaceholderData, isPending, refetch } = query;
  return {
    view: data,
    is_stale: settled !== text || isPlaceholderData || isPending,
    error,
    refetch: () => void refetch(),
  };
}

/** The service decides in the end; what it said of an older input does not count. */
export function isRunnable({ view, is_stale, error }: Estimating): boolean {
  if (is_stale) return true;
  if (error || !view) return false;
  return view.ok && view.obstacle === null;
}
