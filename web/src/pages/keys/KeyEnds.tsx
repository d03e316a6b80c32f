import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyView, NewKeyView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';
import { NewKey } from './NewKey.tsx';
import { renewKeys } from './projects.ts';

type Props = { apiKey: KeyView; close: () => void };

/** A new key in the place of this one. */
export function RotateKey({ apiKey, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [hours, setHours] = useState('24');
  const { mutate, data, error, isPending, reset } = useMutation({
    mutationFn: () => api.post<NewKeyView>(`${base}/keys/${apiKey.id}/rotate`, { overlap_hours: Number(hours) }),
    onSuccess: () => renewKeys(queries, account.id),
    gcTime: 0, // the answer has the key in it
  });
  const end = () => {
    if (isPending) return; // the answer is the only copy of the new key
    close();
    reset();
  };
  if (data) return <NewKey opened created={data} close={end} />;
  return (
    <Modal opened onClose={end} title={`Rotate ${apiKey.name}`}>
      <Stack>
        <Text size="sm">
          You get a new key with the same name. Both keys use one budget: what either spends counts against the same
          limit.
        </Text>
        <Radio.Group label={`The old one, ${apiKey.shown_as}`} value={hours} onChange={setHours}>
          <Stack gap="xs" mt="xs">
            <Radio
              value="24"
              label="works for another 24 hours"
              description="Gives you time to update your programs."
            />
            <Radio value="0" label="stops now" description="Use this if somebody else may have it." />
          </Stack>
        </Radio.Group>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={end}>
            Cancel
          </Button>
          <Button onClick={() => mutate()} loading={isPending}>
            Rotate
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Cannot be taken back, so it asks for the name. */
export function DeleteKey({ apiKey, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [typed, setTyped] = useState('');
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.delete(`${base}/keys/${apiKey.id}`),
    onSuccess: async () => {
      await renewKeys(queries, account.id);
      close();
    },
  });
  const fits = typed.trim() === apiKey.name;
  return (
    <Modal opened onClose={close} title={`Delete ${apiKey.name}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (fits) mutate();
        }}
      >
        <Stack>
          <Text size="sm">
            Programs that call with it are refused within a second. This cannot be undone. Its past calls stay in your
            activity and usage.
          </Text>
          <TextInput
            label={`Type “${apiKey.name}” to confirm`}
            autoComplete="off"
            data-autofocus
            value={typed}
            onChange={({ currentTarget }) => setTyped(currentTarget.value)}
          />
          {error && <Failed error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" color="red.9" disabled={!fits} loading={isPending}>
              Delete
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
