import { useQuery, type QueryClient } from '@tanstack/react-query';
import type { BalanceView } from '../../../src/dashboard/views/common.ts';
import { api } from '../api.ts';
import { usePlace } from '../session.tsx';

/** The balance of the account: one answer for all of a page. */
export function useBalance(options: { enabled?: boolean; refetchInterval?: number } = {}) {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'balance'],
    queryFn: ({ signal }) => api.get<BalanceView>(`${base}/balance`, { signal }),
    ...options,
  });
}

/** Reads again what a run changes that begins or ends: the balance, and whether it is enough for the next one. */
export function renewBalance(queries: QueryClient, account_id: string): void {
  for (const name of ['balance', 'estimate']) void queries.invalidateQueries({ queryKey: [account_id, name] });
}
