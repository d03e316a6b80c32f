import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { RefusalsView } from '../../../../src/dashboard/views/refusals.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';

/** Says how many calls are in no list because they were refused in the last 24 hours; nothing where there are none. */
export function RefusedToday() {
  const { account, base } = usePlace();
  const { data } = useQuery({
    queryKey: [account.id, 'refusals', 'today'],
    queryFn: ({ signal }) => api.get<RefusalsView>(`${base}/refusals`, { signal }),
    refetchInterval: 60_000,
  });
  const total = data?.total ?? 0;
  if (total === 0) return null;
  return (
    <Alert color="yellow" variant="light" mb="md" py="xs" role="status">
      {total.toLocaleString('en')} {total === 1 ? 'call' : 'calls'} refused in the last 24 hours.{' '}
      <LinkTo href="/usage?period=2d#refused" size="sm" underline="always">
        See why
      </LinkTo>
    </Alert>
  );
}
