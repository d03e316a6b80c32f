import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { lazy, Suspense } from 'react';
import { IssuerButtons, useWaysIn } from '../../ui/Issuers.tsx';

/** Loaded when it is opened. */
const SetUpForm = lazy(() => import('./SetUpForm.tsx').then(({ SetUpForm: component }) => ({ default: component })));

/** Asks a person who came by a link to set a password: without one they need another link next time. */
export function SetUp() {
  const [open, { open: show, close }] = useDisclosure();
  const ways = useWaysIn();
  if (ways.data?.password === false) {
    return (
      <Alert variant="light" title="Come back without a link">
        <Stack align="flex-start">
          <Text size="sm">Connect another service, and it signs you in from anywhere.</Text>
          <IssuerButtons issuers={ways.data.issuers} purpose="link" word="Connect" />
        </Stack>
      </Alert>
    );
  }
  return (
    <Alert variant="light" title="Come back without a link">
      <Group justify="space-between">
        <Text size="sm">Give an e-mail address and a password, and you can sign in again from anywhere.</Text>
        <Button size="xs" onClick={show}>
          Set them now
        </Button>
      </Group>
      {open && (
        <Suspense>
          <SetUpForm close={close} />
        </Suspense>
      )}
    </Alert>
  );
}
