import { Checkbox, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { AddedProviderView } from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { fieldError, otherError } from '../../ui/field-error.ts';

type Props = { provider: AddedProviderView; close: () => void };

type Values = { api_key: string; base_url: string; allow_private: boolean; margin: string };

const fields = ['api_key', 'base_url', 'allow_private', 'margin'] as const;

/** Changes the key, the address and the margin of a provider. */
export function EditProvider({ provider, close }: Props) {
  const queries = useQueryClient();
  const { name, title, base_url, has_address, allow_private, last_four, margin } = provider;
  const form = useForm<Values>({ initialValues: { api_key: '', base_url: base_url ?? '', allow_private, margin } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: Values) => api.post(`/dash/admin/providers/${name}/change`, changeOf(values, provider)),
    onSuccess: async () => {
      await queries.invalidateQueries();
      close();
    },
    gcTime: 0, // its variables have the key in them
  });
  const input = (field: (typeof fields)[number]) => ({ ...form.getInputProps(field), error: fieldError(error, field) });
  return (
    <Modal opened onClose={close} title={`Change ${title}`} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <PasswordInput
            label="New API key"
            description={
              last_four === null ? 'None is stored.' : `Empty: the stored one stays, which ends with ${last_four}.`
            }
            autoComplete="off"
            data-autofocus
            {...input('api_key')}
          />
          {has_address && (
            <>
              <TextInput label="Address" inputMode="url" autoComplete="off" {...input('base_url')} />
              <Checkbox
                label="The server is in my own network"
                {...form.getInputProps('allow_private', { type: 'checkbox' })}
                error={fieldError(error, 'allow_private')}
              />
            </>
          )}
          <TextInput
            label="Margin in percent"
            description="For models without a margin or a price of their own."
            inputMode="decimal"
            autoComplete="off"
            {...input('margin')}
          />
          <FormEnd word="Save" color="orange" isPending={isPending} error={otherError(error, fields)} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}

/** Only what is another: a new address or key is tried before it is stored. */
function changeOf(values: Values, { base_url, allow_private, margin }: AddedProviderView) {
  const is_moved = values.base_url.trim() !== (base_url ?? '') || values.allow_private !== allow_private;
  return {
    ...(values.api_key.trim() !== '' && { api_key: values.api_key }),
    ...(is_moved && { base_url: values.base_url, allow_private: values.allow_private }),
    ...(values.margin !== margin && { margin: values.margin }),
  };
}
