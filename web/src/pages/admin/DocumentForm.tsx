import { Alert, NativeSelect, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  AddedProviderView,
  AdminProviders,
  DocumentView,
  ModelsAdded,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { DocumentFields } from './DocumentFields.tsx';
import { initialChoice, problemOf, sentField, type FieldChoice } from './document-choice.ts';
import { fieldError, otherError } from '../../ui/field-error.ts';
import { typedPrice, typedUnits, type Amounts } from './provider-prices.ts';

type Props = {
  view: AdminProviders;
  provider: AddedProviderView;
  text: string;
  document: DocumentView;
  /** A first id, without the prefix. */
  id: string;
  close: () => void;
};

const kinds = [
  { value: 'image', label: 'Images' },
  { value: 'video', label: 'Videos' },
  { value: 'audio', label: 'Audio' },
];

/** The free price of a machine of one's own. */
const free: Amounts = { image: '0', request: '0' };

/** The form of a model that is made of a document: its id, its kind, the fields of its input, its price. */
export function DocumentForm(props: Props) {
  const { view, provider, document } = props;
  const [facts, setFacts] = useState<FactsOf>({ id: props.id, kind: document.kind, amounts: free });
  const [choices, setChoices] = useState<ReadonlyMap<string, FieldChoice>>(
    () => new Map(document.fields.map((field) => [field.target, initialChoice(field)])),
  );
  const { mutate, error, isPending } = useAddDocument(props);
  const ticked = document.fields.flatMap((field) => {
    const choice = choices.get(field.target);
    return choice?.is_ticked ? [{ field, choice }] : [];
  });
  const { id, kind, amounts } = facts;
  const price = typedPrice(kind, amounts);
  const is_ready = id.trim() !== '' && price !== undefined && ticked.every(({ choice }) => !problemOf(choice));
  const submit = () => mutate({ id, kind, price, fields: ticked.map(({ field, choice }) => sentField(field, choice)) });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (is_ready) submit();
      }}
      noValidate
    >
      <Stack>
        <Facts view={view} provider={provider} facts={facts} set={setFacts} error={error} />
        {document.problems.length > 0 && <Problems problems={document.problems} />}
        <DocumentFields
          fields={document.fields}
          choices={choices}
          set={(target, choice) => setChoices((all) => new Map(all).set(target, choice))}
        />
        {fieldError(error, 'fields') !== undefined && (
          <Text size="sm" c="red.9" role="alert">
            {fieldError(error, 'fields')}
          </Text>
        )}
        <FormEnd
          word="Add the model"
          color="orange"
          isPending={isPending}
          is_ready={is_ready}
          error={otherError(error, ['id', 'price', 'fields'])}
          cancel={props.close}
        />
      </Stack>
    </form>
  );
}

/** It may be added all the same: what is missing can be installed later. */
function Problems({ problems }: { problems: readonly string[] }) {
  return (
    <Alert color="yellow" title="Look at this first">
      {problems.map((problem) => (
        <Text key={problem} size="sm" style={{ overflowWrap: 'anywhere' }}>
          {problem}
        </Text>
      ))}
    </Alert>
  );
}

type FactsOf = { id: string; kind: string; amounts: Amounts };

type FactsProps = Pick<Props, 'view' | 'provider'> & {
  facts: FactsOf;
  set: (facts: FactsOf) => void;
  error: Error | null;
};

/** Its id, its kind and its price. */
function Facts({ view, provider, facts, set, error }: FactsProps) {
  const { id, kind, amounts } = facts;
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }}>
      <TextInput
        label="Name"
        description={`Callers use ${provider.prefix}${id.trim() === '' ? 'NAME' : id.trim()}.`}
        placeholder="portrait"
        maxLength={100}
        required
        autoComplete="off"
        value={id}
        onChange={({ currentTarget }) => set({ ...facts, id: currentTarget.value })}
        error={fieldError(error, 'id')}
        data-autofocus
      />
      <NativeSelect
        label="It makes"
        description="By the nodes that save files."
        data={kinds}
        value={kind}
        onChange={({ currentTarget }) => set({ ...facts, kind: currentTarget.value })}
      />
      {typedUnits(kind).map(({ unit, label }) => (
        <TextInput
          key={unit}
          label={`${label}, in ${view.currency}`}
          description="0 makes it free."
          inputMode="decimal"
          autoComplete="off"
          required
          value={amounts[unit] ?? ''}
          onChange={({ currentTarget }) => set({ ...facts, amounts: { ...amounts, [unit]: currentTarget.value } })}
          error={typedPrice(kind, amounts) ? fieldError(error, 'price') : 'Enter an amount such as 0.05.'}
        />
      ))}
    </SimpleGrid>
  );
}

function useAddDocument({ provider, text, close }: Props) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (model: object) =>
      api.post<ModelsAdded>(`/dash/admin/providers/${provider.name}/documents`, { ...model, document: text }),
    onSuccess: async ({ added }) => {
      await queries.invalidateQueries();
      notifications.show({ color: 'teal', message: `${added[0]} is offered now.` });
      close();
    },
  });
}
