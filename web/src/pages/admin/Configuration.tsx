import { Alert, Button, Code, List, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { AdminCheck, AdminConfiguration, AdminReload } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';

/** The page of the running configuration. */
export function Configuration() {
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ['admin', 'configuration'],
    queryFn: ({ signal }) => api.get<AdminConfiguration>('/dash/admin/configuration', { signal }),
  });
  const check = useMutation({
    mutationFn: () => api.get<AdminCheck>('/dash/admin/configuration/check'),
  });
  const reload = useMutation({
    mutationFn: () => api.post<AdminReload>('/dash/admin/reload'),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['admin'] }),
  });
  return (
    <Page
      title="Configuration"
      about="The running configuration. Change it in its file; models and routes can also be switched on their page."
      actions={
        <>
          <Button variant="default" onClick={() => (reload.reset(), check.mutate())} loading={check.isPending}>
            Check the file
          </Button>
          <Button color="orange" onClick={() => (check.reset(), reload.mutate())} loading={reload.isPending}>
            Reload the file
          </Button>
        </>
      }
    >
      {check.data && <Checked of={check.data} />}
      {check.error && <Failed error={check.error} />}
      {reload.data && <Outcome of={reload.data} />}
      {reload.error && <Failed error={reload.error} />}
      <Loaded query={query} height={520}>
        {(view) => <Parts view={view} />}
      </Loaded>
    </Page>
  );
}

function Checked({ of: { file, ok, errors, warnings } }: { of: AdminCheck }) {
  const lines = [...errors, ...warnings.map((warning) => `warning: ${warning}`)];
  const what = file === null ? 'There is no file. The environment' : 'The file';
  return (
    <Alert color={ok ? 'teal' : 'red'} title={`${what} ${ok ? 'is valid' : 'has errors'}`}>
      {lines.length === 0 ? (
        'The check changed nothing.'
      ) : (
        <List size="sm" style={{ overflowWrap: 'anywhere' }}>
          {lines.map((line) => (
            <List.Item key={line}>{line}</List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}

function Outcome({ of }: { of: AdminReload }) {
  if (of.ok)
    return (
      <Alert color="teal" title="The file was loaded">
        {of.message}
      </Alert>
    );
  return (
    <Alert color="red" title="The file has errors" icon={<ExclamationTriangleIcon aria-hidden />}>
      <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
        {of.message}
      </Text>
      <Text size="sm" mt="xs">
        The service keeps its previous configuration.
      </Text>
    </Alert>
  );
}

function Parts({ view }: { view: AdminConfiguration }) {
  const { file, version, node, database, migrations, warnings, settings } = view;
  const facts = [
    ['File', file ?? 'none: the sandbox, and the models of providers with a key in the environment'],
    ['Version', version],
    ['Node', node],
    ['Database', database],
    ['Migrations', `${migrations.applied} applied${pendingText(migrations.pending)}`],
  ] as const;
  return (
    <Stack gap="lg">
      {warnings.length > 0 && (
        <Alert color="yellow" title="Warnings" icon={<ExclamationTriangleIcon aria-hidden />}>
          <List size="sm">
            {warnings.map((warning) => (
              <List.Item key={warning}>{warning}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="This service">
          <Facts caption="This service" rows={facts} />
        </Card>
        <Card title="Settings">
          <Facts caption="Settings" rows={settings.map(({ name, value }) => [name, value] as const)} />
        </Card>
      </SimpleGrid>
      <Providers view={view} />
    </Stack>
  );
}

function pendingText(pending: readonly string[]): string {
  return pending.length === 0 ? ', none pending' : `, pending: ${pending.join(', ')}`;
}

function Facts({ caption, rows }: { caption: string; rows: readonly (readonly [string, string])[] }) {
  return (
    <Table verticalSpacing={6} horizontalSpacing={0}>
      <caption style={{ position: 'absolute', left: -9999 }}>{caption}</caption>
      <Table.Tbody>
        {rows.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400} c="dimmed" pr="md" style={{ verticalAlign: 'top' }}>
              {name}
            </Table.Th>
            <Table.Td miw={{ base: 140, xs: 200 }} style={{ overflowWrap: 'anywhere' }}>
              {value}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Providers({ view: { providers } }: { view: AdminConfiguration }) {
  return (
    <Card title="Providers">
      {providers.length === 0 ? (
        <Text c="dimmed">No providers are configured.</Text>
      ) : (
        <ListTable
          caption="Providers"
          columns={[{ name: 'Name' }, { name: 'Protocol' }, { name: 'Address' }, { name: 'Key' }]}
        >
          {providers.map(({ name, adapter, base_url, key }) => (
            <Table.Tr key={name}>
              <Table.Td>{name}</Table.Td>
              <Table.Td>
                <Code>{adapter}</Code>
              </Table.Td>
              <Table.Td maw={340}>
                <Text size="sm" truncate title={base_url ?? ''}>
                  {base_url ?? 'default'}
                </Text>
              </Table.Td>
              <Table.Td>
                <Status of={key} />
              </Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      )}
    </Card>
  );
}
