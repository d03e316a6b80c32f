import { Select, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { AdminAccount } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { amountSent } from '../../ui/amount.ts';
import { fieldErrors } from '../../ui/field-error.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';

type Props = { currencies: readonly string[]; close: () => void };

/** An account without people: they come by a link to hand over. */
export function CreateAccount({ currencies, close }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useForm({
    initialValues: { name: '', currency: currencies[0] ?? '', credit: '' },
    validate: { name: (name) => (name.trim() === '' ? 'Give it a name.' : null) },
  });
  const { mutate, error, isPending } = useMutation({
    mutationFn: ({ name, currency, credit }: typeof form.values) => {
      const amount = amountSent(credit);
      return api.post<AdminAccount>('/dash/admin/accounts', { name, currency, ...(amount && { credit: amount }) });
    },
    onSuccess: async ({ id }) => {
      await queries.invalidateQueries({ queryKey: ['admin', 'accounts'] });
      close();
      await navigate({ to: `/admin/accounts/${id}` });
    },
  });
  const errors = fieldErrors(error, { name: 'Name', currency: 'Currency', credit: 'Initial credit' });
  return (
    <Modal opened onClose={close} title="Create an account" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <TextInput
            label="Name"
            description="Shown to its people and on its invoices."
            maxLength={200}
            required
            data-autofocus
            {...form.getInputProps('name')}
            error={form.errors['name'] ?? errors.of('name')}
          />
          <Select
            label="Currency"
            description="Cannot be changed later."
            data={[...currencies]}
            allowDeselect={false}
            {...form.getInputProps('currency')}
            error={errors.of('currency')}
          />
          <TextInput
            label="Initial credit"
            description="Empty: none."
            placeholder="25.00"
            inputMode="decimal"
            autoComplete="off"
            {...form.getInputProps('credit')}
            error={errors.of('credit')}
          />
          <FormEnd word="Create" color="orange" isPending={isPending} error={errors.other} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
