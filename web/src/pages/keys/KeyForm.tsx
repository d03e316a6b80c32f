import { Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { KeyView, NewKeyView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { optionalAmount } from '../../ui/amount.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { NewKey } from './NewKey.tsx';

type Values = { name: string; limit: string };

/** Without a limit there is none. */
function toBody({ name, limit }: Values) {
  return { name, limit: optionalAmount(limit) };
}

/** Asks for a name and a limit, then tells the key, once. */
export function CreateKey({ opened, close }: { opened: boolean; close: () => void }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: (values: Values) => api.post<NewKeyView>(`${base}/keys`, toBody(values)),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'keys'] }),
    gcTime: 0, // the answer has the key in it
  });
  const end = () => {
    close();
    reset();
  };
  if (data) return <NewKey opened={opened} made={data} close={end} />;
  return (
    <Modal opened={opened} onClose={end} title="Create a key">
      <Fields
        values={{ name: '', limit: '' }}
        submit={mutate}
        error={error}
        pending={isPending}
        word="Create"
        end={end}
      />
    </Modal>
  );
}

export function ChangeKey({ apiKey, close }: { apiKey: KeyView; close: () => void }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: Values) => api.patch(`${base}/keys/${apiKey.id}`, toBody(values)),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'keys'] });
      close();
    },
  });
  const limit = apiKey.limit?.exact.replace(/(\.\d\d)(\d*?)0*$/, '$1$2') ?? '';
  return (
    <Modal opened onClose={close} title={`Change ${apiKey.name}`}>
      <Fields
        values={{ name: apiKey.name, limit }}
        submit={mutate}
        error={error}
        pending={isPending}
        word="Save"
        end={close}
      />
    </Modal>
  );
}

function Fields(props: {
  values: Values;
  submit: (values: Values) => void;
  error: Error | null;
  pending: boolean;
  word: string;
  end: () => void;
}) {
  const { account } = usePlace();
  const form = useForm({ mode: 'uncontrolled', initialValues: props.values });
  return (
    <form onSubmit={form.onSubmit(props.submit)}>
      <Stack>
        <TextInput
          label="Name"
          description="Where it is used, for example. Names appear in usage and activity."
          required
          maxLength={100}
          autoComplete="off"
          data-autofocus
          {...form.getInputProps('name')}
        />
        <TextInput
          label={`Monthly limit in ${account.currency}`}
          description="What it may spend from the first to the last of a month (UTC). Empty: no limit of its own."
          inputMode="decimal"
          placeholder="No limit"
          autoComplete="off"
          maxLength={20}
          {...form.getInputProps('limit')}
        />
        <FormEnd word={props.word} isPending={props.pending} error={props.error} cancel={props.end} />
      </Stack>
    </form>
  );
}
