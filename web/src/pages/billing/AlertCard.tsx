import { Alert, Group, Stack, Text, TextInput } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BillingView } from '../../../../src/dashboard/views/billing.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { optionalAmount } from '../../ui/amount.ts';
import { inPageWords } from '../../ui/field-error.ts';
import { MayButton, useDenial } from '../../ui/MayButton.tsx';
import { moneyText } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Saved } from '../../ui/Saved.tsx';

/** Below how much one wants to be told. */
export function AlertCard({ view: { alert } }: { view: BillingView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const denial = useDenial('billing');
  const [threshold, setThreshold] = useState(alert.threshold?.amount ?? '');
  const save = useMutation({
    mutationFn: (value: string | null) => api.put<BillingView>(`${base}/billing/alert`, { threshold: value }),
    onSuccess: (view) => {
      queries.setQueryData([account.id, 'billing'], view);
      void queries.invalidateQueries({ queryKey: [account.id, 'home'] });
    },
  });
  return (
    <Card title="Low balance">
      <Stack gap="sm">
        {alert.is_low && alert.threshold && (
          <Alert color="yellow" variant="light" icon={<ExclamationTriangleIcon aria-hidden />}>
            Less than {moneyText(alert.threshold)} is available.
          </Alert>
        )}
        <Text size="sm" c="dimmed">
          Warns the people of this account when less than this is available: on Home, and by mail if the service sends
          mail.
        </Text>
        <Group align="flex-end" gap="sm">
          <TextInput
            label={`Less than, in ${account.currency}`}
            placeholder="No alert"
            inputMode="decimal"
            value={threshold}
            onChange={(event) => setThreshold(event.currentTarget.value)}
            readOnly={denial !== undefined}
            error={save.error && inPageWords(save.error.message, 'threshold', 'It')}
            w={200}
          />
          <MayButton
            right="billing"
            variant="light"
            loading={save.isPending}
            onClick={() => save.mutate(optionalAmount(threshold))}
          >
            Save
          </MayButton>
          {alert.threshold && (
            <MayButton right="billing" variant="subtle" color="gray" onClick={() => save.mutate(null)}>
              No alert
            </MayButton>
          )}
        </Group>
        <Saved is_saved={save.isSuccess} />
      </Stack>
    </Card>
  );
}
