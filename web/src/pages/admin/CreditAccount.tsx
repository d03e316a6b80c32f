import { SegmentedControl, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccount } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { amountSent } from '../../ui/amount.ts';
import { fieldErrors } from '../../ui/field-error.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Money, moneyText } from '../../ui/Money.tsx';

type Props = { account: AdminAccount; close: () => void };

/** Made once for each dialog: a click that is repeated, or a request that is sent again, books once. */
function newRef(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12)); // randomUUID is missing without https
  return `dashboard-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

const amount_form = /^\d{1,10}(\.\d{1,6})?$/;

type Movement = { way: string; amount: string; reason: string };

function useCreditForm() {
  return useForm<Movement>({
    initialValues: { way: 'credit', amount: '', reason: '' },
    validate: {
      amount: (amount) =>
        amount_form.test(amountSent(amount)) && /[1-9]/.test(amount) ? null : 'Enter an amount such as 1000.00.',
      reason: (reason) => (reason.trim() === '' ? 'Enter a reason: the account sees it in its ledger.' : null),
    },
  });
}

function useBooking({ id }: AdminAccount, close: () => void) {
  const queries = useQueryClient();
  const [ref] = useState(newRef);
  return useMutation({
    mutationFn: ({ way, amount, reason }: Movement) => {
      const signed = `${way === 'debit' ? '-' : ''}${amountSent(amount)}`;
      return api.post<AdminAccount>(`/dash/admin/accounts/${id}/credit`, { amount: signed, reason, ref });
    },
    onSuccess: async (after) => {
      await queries.invalidateQueries({ queryKey: ['admin'] });
      await queries.invalidateQueries({ queryKey: [id] });
      notifications.show({ color: 'teal', message: `Booked. ${moneyText(after.available)} is available now.` });
      close();
    },
  });
}

export function CreditAccount({ account, close }: Props) {
  const { name, currency, available } = account;
  const form = useCreditForm();
  const { mutate, error, isPending } = useBooking(account, close);
  const errors = fieldErrors(error, { amount: 'Amount', reason: 'Reason' });
  return (
    <Modal
      opened
      onClose={close}
      title={`Credit or debit ${name}`}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <Text size="sm">
            Available now: <Money cost={available} />. Entries cannot be deleted, only corrected by another entry.
          </Text>
          <SegmentedControl
            aria-label="Direction"
            data={[
              { value: 'credit', label: 'Credit: add' },
              { value: 'debit', label: 'Debit: subtract' },
            ]}
            {...form.getInputProps('way')}
          />
          <TextInput
            label={`Amount in ${currency}`}
            placeholder="25.00"
            inputMode="decimal"
            autoComplete="off"
            required
            data-autofocus
            {...form.getInputProps('amount')}
            error={form.errors['amount'] ?? errors.of('amount')}
          />
          <TextInput
            label="Reason"
            description="Shown in the account's ledger."
            maxLength={500}
            required
            {...form.getInputProps('reason')}
            error={form.errors['reason'] ?? errors.of('reason')}
          />
          <FormEnd word="Book" color="orange" isPending={isPending} error={errors.other} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
