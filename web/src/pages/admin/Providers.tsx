import { Alert, Button, Code, Stack, Text } from '@mantine/core';
import { LockOpenIcon } from '@heroicons/react/24/outline';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminProviders } from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { AddProvider } from './AddProvider.tsx';
import { ChooseModels } from './ChooseModels.tsx';
import { ProviderCard } from './ProviderCard.tsx';

/** The open dialog: a provider is added first, then its models are chosen. */
type Opened = 'add' | { choose: string };

/** Providers that operators add here, with their models. */
export function Providers() {
  const [opened, setOpened] = useState<Opened>();
  const query = useQuery({
    queryKey: ['admin', 'providers'],
    queryFn: ({ signal }) => api.get<AdminProviders>('/dash/admin/providers', { signal }),
  });
  const close = () => setOpened(undefined);
  return (
    <Page
      title="Providers"
      about="Providers and models added here are offered on every node within a second, without a restart. They stand beside those of the configuration file; where both have the same name, the file wins."
      actions={
        <Button color="orange" onClick={() => setOpened('add')}>
          Add a provider
        </Button>
      }
    >
      <Loaded query={query} height={420}>
        {(view) => (
          <>
            <Parts view={view} open={setOpened} />
            {opened === 'add' && <AddProvider view={view} close={close} next={(name) => setOpened({ choose: name })} />}
            {typeof opened === 'object' && <ChooseModels view={view} name={opened.choose} close={close} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Parts({ view, open }: { view: AdminProviders; open: (opened: Opened) => void }) {
  const { providers, is_encrypted, file, file_providers } = view;
  return (
    <Stack gap="lg">
      {!is_encrypted && <NotEncrypted />}
      {providers.length === 0 ? (
        <Empty
          title="No providers were added here"
          action={
            <Button color="orange" variant="light" onClick={() => open('add')}>
              Choose a provider
            </Button>
          }
        >
          Choose one, paste its key, tick the models to offer. Nothing has to be restarted.
        </Empty>
      ) : (
        providers.map((provider) => (
          <ProviderCard
            key={provider.name}
            view={view}
            provider={provider}
            choose={() => open({ choose: provider.name })}
          />
        ))
      )}
      {file_providers.length > 0 && (
        <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          In {file ?? 'the configuration'}: {file_providers.join(', ')}. These are changed in the file; see{' '}
          <LinkTo href="/admin/configuration">Configuration</LinkTo>.
        </Text>
      )}
    </Stack>
  );
}

function NotEncrypted() {
  return (
    <Alert color="yellow" title="Keys are stored without encryption" icon={<LockOpenIcon aria-hidden />}>
      <Text size="sm">
        <Code>MEDLEY_SECRET</Code> is not set, so whoever can read the database or a backup can read the keys of
        providers. Set it and restart: keys that are stored already are encrypted within a minute.
      </Text>
    </Alert>
  );
}
