import { Anchor, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { BillingView } from '../../../../src/dashboard/views/billing.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { amountSent } from '../../ui/amount.ts';
import { inPageWords } from '../../ui/field-error.ts';
import { MayButton } from '../../ui/MayButton.tsx';
import { moneyText } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';

const amounts = ['10', '25', '50', '100'];

/** Money into the balance: by card where the service can take them, else in the words of whoever runs it. */
export function TopUpCard({ view: { top_up } }: { view: BillingView }) {
  return (
    <Card title="Top up" h="100%">
      {top_up.by === 'card' ? (
        <ByCard smallest={top_up.smallest} largest={top_up.largest} />
      ) : (
        <ByWords text={top_up.text} />
      )}
    </Card>
  );
}

/** Whoever runs the service is told where they do it themselves. */
function ByWords({ text }: { text: string | null }) {
  const { me, account } = usePlace();
  return (
    <Stack gap="sm">
      <Text style={{ whiteSpace: 'pre-line', overflowWrap: 'anywhere' }} {...(text === null && { c: 'dimmed' })}>
        {text ?? 'Ask the operator of this service to add to the balance.'}
      </Text>
      {me.user.is_operator && (
        <Text size="sm">
          You run it:{' '}
          <Anchor component={Link} to={`/admin/accounts/${account.id}`} size="sm">
            credit this account
          </Anchor>
          .
        </Text>
      )}
    </Stack>
  );
}

function ByCard({ smallest, largest }: { smallest: string; largest: string }) {
  const { account, base } = usePlace();
  const { currency } = account;
  const [amount, setAmount] = useState('25');
  const pay = useMutation({
    mutationFn: () => api.post<{ url: string }>(`${base}/billing/top-up`, { amount: amountSent(amount) }),
    onSuccess: ({ url }) => window.location.assign(url),
  });
  const shown = (text: string) => moneyText({ amount: text.replace(/\.0+$/, ''), currency });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        pay.mutate();
      }}
    >
      <Stack gap="sm">
        <Group gap="xs" role="group" aria-label="Amounts">
          {amounts.map((each) => (
            <Button
              key={each}
              size="xs"
              variant={each === amount ? 'light' : 'default'}
              aria-pressed={each === amount}
              onClick={() => setAmount(each)}
            >
              {shown(each)}
            </Button>
          ))}
        </Group>
        <Group gap="sm" align="flex-start">
          <TextInput
            label={`Amount in ${currency}`}
            description={`From ${shown(smallest)} to ${shown(largest)}`}
            inputMode="decimal"
            value={amount}
            onChange={(event) => setAmount(event.currentTarget.value)}
            error={pay.error && inPageWords(pay.error.message, 'amount', 'Amount')}
            style={{ flex: '1 1 160px' }}
          />
        </Group>
        <div>
          <MayButton right="billing" onClick={() => pay.mutate()} loading={pay.isPending || pay.isSuccess}>
            Pay by card
          </MayButton>
        </div>
        <Text size="xs" c="dimmed">
          You pay on Stripe’s page. Card numbers never reach this service.
        </Text>
      </Stack>
    </form>
  );
}
