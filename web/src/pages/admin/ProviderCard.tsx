import { Alert, Button, Group, Menu, Stack, Table, Text } from '@mantine/core';
import { EllipsisHorizontalIcon } from '@heroicons/react/24/outline';
import { useState } from 'react';
import type {
  AddedModelView,
  AddedProviderView,
  AdminProviders,
} from '../../../../src/dashboard/views/admin-providers.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { priceTexts } from '../../ui/price.ts';
import { EditModel } from './EditModel.tsx';
import { EditProvider } from './EditProvider.tsx';
import { RemoveAdded } from './RemoveAdded.tsx';
import { useChange, type Change } from './useChange.ts';

type Props = { view: AdminProviders; provider: AddedProviderView; choose: () => void };

type Opened = 'edit' | 'remove' | { edit: AddedModelView } | { remove: AddedModelView };

/** One provider that was added here, with its models. */
export function ProviderCard({ view, provider, choose }: Props) {
  const [opened, setOpened] = useState<Opened>();
  const change = useChange();
  const close = () => setOpened(undefined);
  const { name, title, problem, is_off, models } = provider;
  return (
    <Card
      title={title.toLowerCase() === name ? title : `${title} (${name})`}
      side={
        <Group gap="xs">
          <Status of={is_off ? 'off' : problem === null ? 'used' : 'warning'} />
          <Button size="xs" variant="light" color="orange" onClick={choose}>
            Add models
          </Button>
          <Actions provider={provider} change={change} open={setOpened} />
        </Group>
      }
    >
      <Stack gap="sm">
        {problem !== null && (
          <Alert color="yellow" variant="light">
            {problem}
          </Alert>
        )}
        {change.error && <Failed error={change.error} />}
        <Facts provider={provider} />
        {models.length === 0 ? <Text c="dimmed">No models yet.</Text> : <Models provider={provider} open={setOpened} />}
      </Stack>
      {opened === 'edit' && <EditProvider provider={provider} close={close} />}
      {opened === 'remove' && <RemoveAdded provider={provider} close={close} />}
      {typeof opened === 'object' && 'edit' in opened && (
        <EditModel view={view} provider={provider} model={opened.edit} close={close} />
      )}
      {typeof opened === 'object' && 'remove' in opened && (
        <RemoveAdded provider={provider} model={opened.remove} close={close} />
      )}
    </Card>
  );
}

function Facts({ provider: { base_url, last_four, margin } }: { provider: AddedProviderView }) {
  const facts = [
    base_url ?? 'usual address',
    last_four === null ? 'no key' : `key …${last_four}`,
    `${margin} % on list prices`,
  ];
  return (
    <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
      {facts.join(' · ')}
    </Text>
  );
}

type ActionsProps = { provider: AddedProviderView; change: Change; open: (opened: Opened) => void };

function Actions({ provider: { name, is_off }, change, open }: ActionsProps) {
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <Button size="xs" variant="default" px={8} aria-label={`More for ${name}`}>
          <EllipsisHorizontalIcon width={18} aria-hidden />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => open('edit')}>Key, address and margin</Menu.Item>
        <Menu.Item onClick={() => change.make(`providers/${name}/change`, { is_off: !is_off })}>
          {is_off ? 'Switch on' : 'Switch off: its models are not offered'}
        </Menu.Item>
        <Menu.Item color="red" onClick={() => open('remove')}>
          Remove…
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function Models({ provider, open }: { provider: AddedProviderView; open: (opened: Opened) => void }) {
  return (
    <ListTable
      caption={`Models of ${provider.name}`}
      columns={[
        { name: 'Model' },
        { name: 'List price' },
        { name: 'For your callers' },
        { name: 'Actions', hidden: true },
      ]}
    >
      {provider.models.map((model) => (
        <ModelRow key={model.id} provider={provider} model={model} open={open} />
      ))}
    </ListTable>
  );
}

type RowProps = { provider: AddedProviderView; model: AddedModelView; open: (opened: Opened) => void };

function ModelRow({ provider, model, open }: RowProps) {
  const { id, kind, list_price, price, margin, has_own_price, is_off, problem } = model;
  const is_used = problem === null && provider.problem === null && !provider.is_off;
  return (
    <Table.Tr>
      <Table.Td miw={160} maw={300}>
        <Text size="sm" fw={600} component="div" style={{ overflowWrap: 'anywhere' }}>
          {is_used ? <LinkTo href={`/models/${id}`}>{id}</LinkTo> : id}
        </Text>
        <Text size="xs" c="dimmed">
          {kind}
          {is_off && ', switched off on Models & routes'}
        </Text>
        {problem !== null && (
          <Text size="xs" c="orange.9" className="problem">
            {problem}
          </Text>
        )}
      </Table.Td>
      <Table.Td miw={150}>
        <Lines texts={list_price.length === 0 ? ['none'] : priceTexts(list_price)} />
      </Table.Td>
      <Table.Td miw={150}>
        <Lines texts={price.length === 0 ? ['–'] : priceTexts(price)} />
        <Text size="xs" c="dimmed">
          {has_own_price ? 'typed' : margin === null ? '' : `${margin} % of its own`}
        </Text>
      </Table.Td>
      <Table.Td>
        <Group gap={4} wrap="nowrap" justify="flex-end">
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => open({ edit: model })}
            aria-label={`Price of ${id}`}
          >
            Price
          </Button>
          <Button
            size="compact-xs"
            variant="subtle"
            color="red"
            onClick={() => open({ remove: model })}
            aria-label={`Remove ${id}`}
          >
            Remove
          </Button>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function Lines({ texts }: { texts: readonly string[] }) {
  return texts.map((text) => (
    <Text key={text} size="sm" className="figure">
      {text}
    </Text>
  ));
}
