import { SimpleGrid } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { BalanceView } from '../../../../src/dashboard/views/common.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';

export function BalanceCard() {
  const { account, base } = usePlace();
  const balance = useQuery({
    queryKey: [account.id, 'balance'],
    queryFn: ({ signal }) => api.get<BalanceView>(`${base}/balance`, { signal }),
    refetchInterval: 15_000,
  });
  return (
    <Card title="Balance" h="100%">
      <Loaded query={balance} height={90}>
        {({ available, held, balance: whole }) => (
          <SimpleGrid cols={{ base: 1, xs: 3 }}>
            <Figure name="Available" value={<Money cost={available} />} note="can be spent now" />
            <Figure name="Held" value={<Money cost={held} />} note="for running work" />
            <Figure name="Balance" value={<Money cost={whole} />} note="both together" />
          </SimpleGrid>
        )}
      </Loaded>
    </Card>
  );
}
