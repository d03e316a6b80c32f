import {
  Anchor,
  Checkbox,
  Group,
  PasswordInput,
  Select,
  Stack,
  TextInput,
  type CheckboxProps,
  type TextInputProps,
} from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminProviders, ProviderAdded, ProviderChoice } from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { fieldError, otherError } from '../../ui/field-error.ts';

type Props = { view: AdminProviders; close: () => void; next: (name: string) => void };

/** In the place of a preset. */
const own_address = 'an address of your own';

const groups = {
  cloud: 'Many models behind one key',
  shipped: 'Models that come with Medley',
  local: 'A server of your own',
} as const;

type Values = {
  preset: string;
  name: string;
  adapter: string;
  base_url: string;
  allow_private: boolean;
  api_key: string;
  margin: string;
};

const fields = ['preset', 'name', 'adapter', 'base_url', 'allow_private', 'api_key', 'margin'] as const;
type Field = (typeof fields)[number];

const initial_values: Values = {
  preset: '',
  name: '',
  adapter: '',
  base_url: '',
  allow_private: false,
  api_key: '',
  margin: '20',
};

/** The form, what was chosen in it, and the request that sends it. */
function useAdding({ view, next }: Pick<Props, 'view' | 'next'>) {
  const queries = useQueryClient();
  const form = useForm<Values>({
    initialValues: { ...initial_values, adapter: view.protocols[0]?.name ?? '' },
    validate: { preset: (preset) => (preset === '' ? 'Choose a provider.' : null) },
  });
  const choice = choiceOf(view, form.values);
  const { mutate, error, isPending, reset } = useMutation({
    mutationFn: (values: Values) =>
      api.post<ProviderAdded>('/dash/admin/providers', bodyOf(values, choiceOf(view, values))),
    onSuccess: async ({ name }) => {
      await queries.invalidateQueries();
      next(name);
    },
    gcTime: 0, // its variables have the key in them
  });
  const choose = (preset: string | null) => {
    const chosen = view.choices.find(({ name }) => name === preset);
    const { base_url, allow_private = false } = chosen ?? {};
    form.setValues({
      preset: preset ?? '',
      name: freeName(view, chosen?.name ?? ''),
      base_url: base_url ?? '',
      allow_private,
    });
    reset();
  };
  const input = (field: Field) => {
    const props = form.getInputProps(field, { type: field === 'allow_private' ? 'checkbox' : 'input' });
    return { ...props, error: props.error ?? fieldError(error, field) };
  };
  return { form, choice, choose, input, mutate, error, isPending, is_own: form.values.preset === own_address };
}

/** Asks for a provider and its key; the service tries them before it stores them. */
export function AddProvider({ view, close, next }: Props) {
  const adding = useAdding({ view, next });
  const { form, choose, input, mutate, error, isPending } = adding;
  return (
    <Modal opened onClose={close} title="Add a provider" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={form.onSubmit((values) => mutate(values))} noValidate>
        <Stack>
          <Select
            label="Provider"
            placeholder="Search or choose"
            data={choicesOf(view)}
            searchable
            required
            allowDeselect={false}
            maxDropdownHeight={320}
            data-autofocus
            nothingFoundMessage="None of this name. Choose “An address of your own”."
            {...input('preset')}
            onChange={choose}
          />
          <Place view={view} adding={adding} />
          <FormEnd
            word="Continue"
            color="orange"
            isPending={isPending}
            error={otherError(error, fields)}
            cancel={close}
          />
        </Stack>
      </form>
    </Modal>
  );
}

type Adding = ReturnType<typeof useAdding>;

/** The fields that depend on what was chosen. */
function Place({ view, adding: { choice, is_own, input, error } }: { view: AdminProviders; adding: Adding }) {
  const [more, setMore] = useState(false);
  const has_address = choice !== undefined && choice.base_url !== null;
  const shows_address = is_own || (has_address && (more || choice.group === 'local'));
  const shows_name = is_own || more || fieldError(error, 'name') !== undefined;
  return (
    <>
      {is_own && (
        <Select
          label="Protocol"
          description="The API that the server speaks."
          data={view.protocols.map(({ name, title }) => ({ value: name, label: title }))}
          allowDeselect={false}
          {...input('adapter')}
        />
      )}
      {shows_address && <Address is_own={is_own} address={input('base_url')} is_private={input('allow_private')} />}
      {(choice?.needs_key ?? is_own) && (
        <PasswordInput
          label="API key"
          description="Stored by the service and never shown again."
          autoComplete="off"
          required={choice?.needs_key ?? false}
          {...input('api_key')}
        />
      )}
      <TextInput
        label="Margin in percent"
        description="Added to the provider's list prices for your callers. Can be changed for each model."
        inputMode="decimal"
        autoComplete="off"
        {...input('margin')}
      />
      {shows_name && (
        <TextInput
          label="Name"
          description="In lower-case letters, for this list and the records of calls."
          maxLength={64}
          required
          {...input('name')}
        />
      )}
      {choice !== undefined && !more && (
        <Group>
          <Anchor component="button" type="button" size="sm" onClick={() => setMore(true)}>
            Another name{has_address && choice.group !== 'local' ? ' or address' : ''}
          </Anchor>
        </Group>
      )}
    </>
  );
}

type AddressProps = {
  is_own: boolean;
  address: TextInputProps;
  is_private: CheckboxProps;
};

function Address({ is_own, address, is_private }: AddressProps) {
  return (
    <>
      <TextInput
        label="Address"
        description={is_own ? 'Up to the version, such as https://api.example.com/v1.' : undefined}
        placeholder="https://api.example.com/v1"
        inputMode="url"
        autoComplete="off"
        required
        {...address}
      />
      <Checkbox
        label="The server is in my own network"
        description="Its address may be private, and so may the links to its results."
        {...is_private}
      />
    </>
  );
}

function choiceOf({ choices }: AdminProviders, { preset }: Values): ProviderChoice | undefined {
  return choices.find(({ name }) => name === preset);
}

function choicesOf({ choices }: AdminProviders) {
  const items = (group: ProviderChoice['group']) =>
    choices.filter((each) => each.group === group).map(({ name, title }) => ({ value: name, label: title }));
  return [
    { group: groups.cloud, items: items('cloud') },
    { group: groups.shipped, items: items('shipped') },
    { group: groups.local, items: [...items('local'), { value: own_address, label: 'An address of your own' }] },
  ];
}

/** The name of the preset, with a number if it is taken. */
function freeName({ providers, file_providers }: AdminProviders, name: string): string {
  const names = new Set([...providers.map((each) => each.name), ...file_providers]);
  let free = name;
  for (let number = 2; names.has(free); number++) free = `${name}-${number}`;
  return free;
}

function bodyOf(values: Values, choice: ProviderChoice | undefined) {
  const { preset, name, adapter, base_url, allow_private, api_key, margin } = values;
  const address = { base_url, allow_private };
  const key = api_key.trim() === '' ? {} : { api_key };
  if (!choice) return { name, adapter, ...address, ...key, margin };
  return { preset, name, ...(choice.base_url !== null && address), ...key, margin };
}
