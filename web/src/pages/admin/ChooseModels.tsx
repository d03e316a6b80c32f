import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  AdminProviders,
  ModelsAdded,
  OfferedModelView,
  ProviderOffer,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { Modal } from '../../ui/Modal.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { AddDocument } from './AddDocument.tsx';
import { OfferTable } from './OfferTable.tsx';
import { isReady, sentModel, type Choice } from './offer-choice.ts';
import { TypeModel } from './TypeModel.tsx';

type Props = { view: AdminProviders; name: string; close: () => void };

/** The models that a provider offers now: ticked ones are added. */
export function ChooseModels({ view, name, close }: Props) {
  const provider = view.providers.find((each) => each.name === name);
  const query = useQuery({
    queryKey: ['admin', 'offer', name],
    queryFn: ({ signal }) => api.get<ProviderOffer>(`/dash/admin/providers/${name}/offer`, { signal }),
    gcTime: 0,
    staleTime: Infinity, // a list that changes under the mouse is no list
  });
  return (
    <Modal
      opened
      onClose={close}
      title={`Models of ${provider?.title ?? name}`}
      size={1000}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Loaded query={query} height={360}>
        {(offer) =>
          offer.document !== null && provider ? (
            <AddDocument view={view} provider={provider} noun={offer.document} close={close} />
          ) : (
            <Chooser view={view} name={name} margin={provider?.margin ?? '0'} offer={offer} close={close} />
          )
        }
      </Loaded>
    </Modal>
  );
}

type ChooserProps = Props & { margin: string; offer: ProviderOffer };

function Chooser({ view, name, margin, offer, close }: ChooserProps) {
  const [search, setSearch] = useState('');
  const [typed, setTyped] = useState<OfferedModelView[]>([]);
  const [choices, setChoices] = useState<ReadonlyMap<string, Choice>>(new Map());
  const models = [...typed, ...offer.models];
  const chosen = models.flatMap((model) => {
    const choice = choices.get(model.upstream_model);
    return choice?.is_ticked ? [{ model, choice }] : [];
  });
  const unready = chosen.filter(({ model, choice }) => !isReady(model, choice, view));
  const set = (upstream_model: string, choice: Choice) => setChoices((all) => new Map(all).set(upstream_model, choice));
  const { mutate, error, isPending } = useAddModels(name, close);
  const submit = () => mutate(chosen.map(({ model, choice }) => sentModel(model, choice, view)));
  return (
    <Stack>
      {offer.problem !== null && (
        <Alert color="yellow" title="Its list of models could not be read">
          {offer.problem}
        </Alert>
      )}
      {offer.models.length > 10 && (
        <TextInput
          label="Search"
          type="search"
          placeholder="Name of a model"
          value={search}
          onChange={({ currentTarget }) => setSearch(currentTarget.value)}
          data-autofocus
        />
      )}
      <OfferTable view={view} models={models} search={search} margin={margin} choices={choices} set={set} />
      {offer.may_type && (
        <TypeModel
          add={(model, choice) => {
            setTyped((all) => [model, ...all.filter((each) => each.upstream_model !== model.upstream_model)]);
            set(model.upstream_model, choice);
          }}
        />
      )}
      {error && <Failed error={error} />}
      <Group justify="flex-end" align="center">
        {unready.length > 0 && (
          <Text size="sm" role="status" c="dimmed">
            Type a price for {unready.length === 1 ? unready[0]?.model.upstream_model : `${unready.length} models`}; 0
            makes it free.
          </Text>
        )}
        <Button variant="default" onClick={close}>
          Later
        </Button>
        <Button
          color="orange"
          onClick={submit}
          loading={isPending}
          disabled={chosen.length === 0 || unready.length > 0}
        >
          {chosen.length === 0 ? 'Add models' : chosen.length === 1 ? 'Add 1 model' : `Add ${chosen.length} models`}
        </Button>
      </Group>
    </Stack>
  );
}

type SentModel = ReturnType<typeof sentModel>;

function useAddModels(name: string, close: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (models: SentModel[]) => api.post<ModelsAdded>(`/dash/admin/providers/${name}/models`, { models }),
    onSuccess: async ({ added }) => {
      await queries.invalidateQueries();
      const text = added.length === 1 ? `${added[0]} is offered now.` : `${added.length} models are offered now.`;
      notifications.show({ color: 'teal', message: text });
      close();
    },
  });
}
