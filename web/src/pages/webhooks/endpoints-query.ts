import { useQuery } from '@tanstack/react-query';
import type { EndpointsView, EndpointView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';

/** The endpoints of the account. */
export function useEndpoints() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'webhook-endpoints'],
    queryFn: ({ signal }) => api.get<EndpointsView>(`${base}/webhooks/endpoints`, { signal }),
    refetchInterval: 15_000,
  });
}

/** A name for lists: its description, else its address without the query. */
export function endpointName({ description, url }: Pick<EndpointView, 'description' | 'url'>): string {
  if (description !== '') return description;
  const { host, pathname } = new URL(url);
  return pathname === '/' ? host : `${host}${pathname}`;
}
