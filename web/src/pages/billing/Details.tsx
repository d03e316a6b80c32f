import { SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BillingDetailsView, BillingView } from '../../../../src/dashboard/views/billing.ts';
import { api, Failure } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { MayButton, useDenial } from '../../ui/MayButton.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Saved } from '../../ui/Saved.tsx';

type Name = keyof BillingDetailsView;

/** The billing details for invoices from now on. */
export function Details({ view }: { view: BillingView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const denial = useDenial('billing');
  const [details, setDetails] = useState(view.details);
  const save = useMutation({
    mutationFn: () => api.put<BillingView>(`${base}/billing/details`, details),
    onSuccess: (saved) => {
      queries.setQueryData([account.id, 'billing'], saved);
      setDetails(saved.details);
    },
  });
  const at_fault = save.error instanceof Failure ? save.error.param : undefined;
  const field = (name: Name, autoComplete: string) => ({
    name,
    autoComplete,
    value: details[name],
    readOnly: denial !== undefined,
    error: at_fault === name ? save.error?.message : undefined,
    onChange: (event: { currentTarget: { value: string } }) => {
      const { value } = event.currentTarget;
      save.reset();
      setDetails((before) => ({ ...before, [name]: value }));
    },
  });
  return (
    <Card title="Billing details">
      <Stack gap="md" maw={640}>
        <Text size="sm" c="dimmed">
          {denial ?? 'Used on invoices from now on; existing invoices never change.'}
        </Text>
        <TextInput label="Company or name" {...field('company', 'organization')} />
        <Textarea label="Street and number" autosize minRows={2} {...field('address', 'street-address')} />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput label="Postal code" {...field('postal_code', 'postal-code')} />
          <TextInput label="City" {...field('city', 'address-level2')} />
        </SimpleGrid>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            label="Country"
            description="Two letters, such as PL"
            maxLength={2}
            {...field('country', 'country')}
          />
          <TextInput label="Tax number" description="With the country’s letters" {...field('tax_id', 'off')} />
        </SimpleGrid>
        <TextInput label="E-mail for invoices" type="email" {...field('email', 'email')} />
        {save.error && at_fault === undefined && <Failed error={save.error} />}
        <div>
          <MayButton right="billing" loading={save.isPending} onClick={() => save.mutate()}>
            Save
          </MayButton>
        </div>
        <Saved is_saved={save.isSuccess} />
      </Stack>
    </Card>
  );
}
