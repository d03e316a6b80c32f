import { Alert, Button, Checkbox, Group, Stack, Switch, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Modal } from '../../../ui/Modal.tsx';
import { Failed } from '../../../ui/states.tsx';
import type { Sending, ServerView, Synchroniser } from './synchroniser.ts';

type Props = { view: ServerView; sending: Sending; synchroniser: Synchroniser };

/** The person's choice whether their conversations are on the server, too. Absent where the operator allows none. */
export function KeepOnServer({ view, sending, synchroniser }: Props) {
  const [is_ending, setEnding] = useState(false);
  const begin = useMutation({ mutationFn: () => synchroniser.switchOn() });
  if (view.days === 0) return null;
  const flip = () => (view.is_on ? setEnding(true) : begin.mutate());
  const where = view.is_encrypted ? 'Encrypted there, seen by nobody else' : 'Seen by nobody else';
  return (
    <>
      <Switch
        label="Keep them on the server, for all my browsers"
        description={`${where}, and removed ${view.days === 1 ? '1 day' : `${view.days} days`} after their last change.`}
        checked={view.is_on || begin.isPending}
        disabled={begin.isPending}
        onChange={flip}
      />
      {begin.error && <Failed error={begin.error} />}
      {view.is_on && <Progress sending={sending} />}
      <Modal opened={is_ending} onClose={() => setEnding(false)} title="Keep them in this browser alone?">
        <EndForm synchroniser={synchroniser} close={() => setEnding(false)} />
      </Modal>
    </>
  );
}

function Progress({ sending: { left, problem } }: { sending: Sending }) {
  if (problem !== undefined) {
    return (
      <Alert color="yellow" variant="light" role="alert" title="Not on the server yet">
        {problem}
      </Alert>
    );
  }
  return (
    <Text size="xs" c="dimmed" role="status" hidden={left < 2}>
      {left === 1 ? '1 conversation is being sent.' : `${left} conversations are being sent.`}
    </Text>
  );
}

function EndForm({ synchroniser, close }: { synchroniser: Synchroniser; close: () => void }) {
  const [removes, setRemoves] = useState(true);
  const end = useMutation({ mutationFn: () => synchroniser.switchOff({ remove: removes }), onSuccess: close });
  return (
    <Stack>
      <Text size="sm">
        {synchroniser.in_memory
          ? 'This browser saves nothing. Export what you need before you remove it from the server.'
          : 'All of them stay in this browser.'}{' '}
        Other browsers no longer get what you add here.
      </Text>
      <Checkbox
        label="Remove them from the server"
        description="Else they stay there until they expire, for when you switch it on again."
        checked={removes}
        onChange={({ currentTarget }) => setRemoves(currentTarget.checked)}
      />
      {end.error && <Failed error={end.error} />}
      <Group>
        <Button
          {...(removes && { color: 'red.9' })}
          onClick={() => end.mutate()}
          loading={end.isPending}
          data-autofocus
        >
          Switch off
        </Button>
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
