import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { DeviceLoginView } from '../../../../src/dashboard/views/device-login.ts';
import { api } from '../../api.ts';
import { Card, Page } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { GiveKey } from './GiveKey.tsx';

/** The state of the page: the program of a code, or what became of it. */
type Waiting = { code: string; program: DeviceLoginView };
type Outcome = 'given' | 'refused';

const route = getRouteApi('/signed-in/device');

/** Connects a program: somebody types the code that their terminal shows, and gives the program a key. */
export function Device() {
  const { code } = route.useSearch();
  const [waiting, setWaiting] = useState<Waiting>();
  const [outcome, setOutcome] = useState<Outcome>();
  return (
    <Page title="Connect a program" about="Gives a key to a program that shows you a code, such as medley login.">
      <Card maw={560}>
        {outcome !== undefined && <Done outcome={outcome} />}
        {outcome === undefined && waiting && (
          <GiveKey {...waiting} onGiven={() => setOutcome('given')} onRefused={() => setOutcome('refused')} />
        )}
        {outcome === undefined && !waiting && <EnterCode code={code ?? ''} onFound={setWaiting} />}
      </Card>
    </Page>
  );
}

function EnterCode({ code, onFound }: { code: string; onFound: (waiting: Waiting) => void }) {
  const form = useForm({ mode: 'uncontrolled', initialValues: { code } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: async (values: { code: string }) => {
      const program = await api.post<DeviceLoginView>('/dash/device-login', values);
      return { code: values.code, program };
    },
    onSuccess: onFound,
  });
  return (
    <form onSubmit={form.onSubmit((values) => mutate(values))}>
      <Stack>
        <TextInput
          label="Code"
          description={
            code === ''
              ? 'Type the code that your terminal shows.'
              : 'Compare it with your terminal. Go on only if it is the same.'
          }
          placeholder="WDJB-MJHT"
          required
          maxLength={40}
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          data-autofocus
          {...form.getInputProps('code')}
        />
        <Alert color="yellow" title="Did you start this yourself?">
          <Text size="sm">
            A code that somebody sent you, by mail or in a chat, gives them a key that spends your money. Nobody who
            helps you needs one.
          </Text>
        </Alert>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={isPending}>
            Continue
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Done({ outcome }: { outcome: Outcome }) {
  return outcome === 'given' ? (
    <Alert color="green" title="The program gets its key" role="status">
      Go back to your terminal. The key is on the page of keys, where you can delete it.
    </Alert>
  ) : (
    <Alert title="The program was refused" role="status">
      It gets no key. You can close this page.
    </Alert>
  );
}
