import { SimpleGrid } from '@mantine/core';
import { useBalance } from '../../ui/balance.ts';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';

export function BalanceCard() {
  const balance = useBalance({ refetchInterval: 15_000 });
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
