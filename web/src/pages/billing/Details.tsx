import { SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BillingDetailsView, BillingView } from '../../../../src/dashboard/views/billing.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { fieldErrors } from '../../ui/field-error.ts';
import { MayButton, useDenial } from '../../ui/MayButton.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Saved } from '../../ui/Saved.tsx';

type Name = keyof BillingDetailsView;

const labels: Readonly<Record<Name, string>> = {
  company: 'Company or name',
  address: 'Street and number',
  postal_code: 'Postal code',
  city: 'City',
  country: 'Country',
  tax_id: 'Tax number',
  email: 'E-mail for invoices',
};

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
  const errors = fieldErrors(save.error, labels);
  const field = (name: Name, autoComplete: string) => ({
    name,
    autoComplete,
    value: details[name],
    readOnly: denial !== undefined,
    label: labels[name],
    error: errors.of(name),
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
        <TextInput {...field('company', 'organization')} />
        <Textarea autosize minRows={2} {...field('address', 'street-address')} />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput {...field('postal_code', 'postal-code')} />
          <TextInput {...field('city', 'address-level2')} />
        </SimpleGrid>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput description="Two letters, such as PL" maxLength={2} {...field('country', 'country')} />
          <TextInput description="With the country’s letters" {...field('tax_id', 'off')} />
        </SimpleGrid>
        <TextInput type="email" {...field('email', 'email')} />
        {errors.other && <Failed error={errors.other} />}
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
