import { Code, Group, Progress, Stack, Table, Text } from '@mantine/core';
import { ArrowPathIcon, PencilSquareIcon, TrashIcon } from '@heroicons/react/24/outline';
import type { KeyView } from '../../../../src/dashboard/views/keys.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { MayIcon } from '../../ui/MayButton.tsx';
import { Money } from '../../ui/Money.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { default_project } from './projects.ts';

/** Which dialog is open, and for which key. */
export type Doing = { what: 'create' } | { what: 'change' | 'rotate' | 'delete'; key: KeyView } | undefined;

type Props = { keys: KeyView[]; setDoing: (doing: Doing) => void };

export function KeyTable({ keys, setDoing }: Props) {
  return (
    <ListTable
      caption="API keys, newest first"
      columns={[
        { name: 'Name' },
        { name: 'Created' },
        { name: 'Last used' },
        { name: 'Spent this month' },
        { name: 'Status' },
        { name: 'Actions', hidden: true },
      ]}
    >
      {keys.map((key) => (
        <Row key={key.id} apiKey={key} setDoing={setDoing} />
      ))}
    </ListTable>
  );
}

function Row({ apiKey, setDoing }: { apiKey: KeyView; setDoing: Props['setDoing'] }) {
  const { name, kind, shown_as, created_at, state, project } = apiKey;
  return (
    <Table.Tr>
      <Table.Td maw={{ base: 160, sm: 280 }}>
        <Text size="sm" fw={600} truncate title={name}>
          {name}
        </Text>
        {kind === 'playground' ? (
          <Text size="xs" c="dimmed">
            used by the playground
          </Text>
        ) : (
          <Code>{shown_as}</Code>
        )}
        {apiKey.is_limited && kind !== 'playground' && (
          <Text size="xs" c="dimmed">
            sees only its project
          </Text>
        )}
        {project.id !== default_project && (
          <Text size="xs" c="dimmed" truncate title={project.name}>
            in {project.name}
          </Text>
        )}
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={created_at} ago />
        </Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <LastUsed apiKey={apiKey} />
      </Table.Td>
      <Table.Td miw={180}>
        <Spent apiKey={apiKey} />
      </Table.Td>
      <Table.Td>
        <State apiKey={apiKey} />
      </Table.Td>
      <Table.Td>
        {state !== 'deleted' && (
          <Group gap={2} justify="flex-end" wrap="nowrap">
            <MayIcon right="keys" label={`Change ${name}`} onClick={() => setDoing({ what: 'change', key: apiKey })}>
              <PencilSquareIcon width={18} aria-hidden />
            </MayIcon>
            {state === 'active' && kind === 'program' && (
              <MayIcon right="keys" label={`Rotate ${name}`} onClick={() => setDoing({ what: 'rotate', key: apiKey })}>
                <ArrowPathIcon width={18} aria-hidden />
              </MayIcon>
            )}
            <MayIcon
              right="keys"
              label={`Delete ${name}`}
              color="red"
              onClick={() => setDoing({ what: 'delete', key: apiKey })}
            >
              <TrashIcon width={18} aria-hidden />
            </MayIcon>
          </Group>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** With a hint for a working key that nobody has used for long. */
function LastUsed({ apiKey }: { apiKey: KeyView }) {
  const { last_used_at, use_noted_since, state, is_unused } = apiKey;
  return (
    <Stack gap={2}>
      {last_used_at !== null ? (
        <Text size="sm">
          <Time at={last_used_at} ago />
        </Text>
      ) : (
        <Text size="sm">
          {use_noted_since === null ? (
            'never'
          ) : (
            <>
              not since <Time at={use_noted_since} />
            </>
          )}
        </Text>
      )}
      {is_unused && state === 'active' && (
        <Text size="xs" c="dimmed">
          Unused for 90 days: delete it?
        </Text>
      )}
    </Stack>
  );
}

function Spent({ apiKey: { name, limit, spent, used_percent } }: { apiKey: KeyView }) {
  if (limit === null || used_percent === null) {
    return (
      <Text size="sm">
        <Money cost={spent} />{' '}
        <Text span size="xs" c="dimmed">
          no limit
        </Text>
      </Text>
    );
  }
  const color = used_percent >= 100 ? 'red' : used_percent >= 80 ? 'yellow' : 'brand';
  return (
    <Stack gap={4}>
      <Text size="sm" style={{ whiteSpace: 'nowrap' }}>
        <Money cost={spent} /> of <Money cost={limit} />
        {used_percent >= 80 && (
          <Text span size="xs" c="dimmed">
            {' '}
            {used_percent >= 100 ? '– used up' : `– ${used_percent} % used`}
          </Text>
        )}
      </Text>
      <Progress
        value={Math.min(100, used_percent)}
        color={color}
        size="sm"
        aria-label={`${name}: ${used_percent} % of the month's limit used`}
      />
    </Stack>
  );
}

const use_words = { chat: 'chat', media: 'media', read: 'reading' };

/** The rules of a key in a few words; nothing for a key without any. */
function rulesOf({ scopes, addresses, models, requests_per_minute, log_content }: KeyView): string {
  const parts = [
    scopes && `${scopes.map((scope) => use_words[scope]).join(' and ')} only`,
    log_content && `chats stored for ${log_content.keep_days.toLocaleString('en-US')} days`,
    models && (models.length <= 2 ? `${models.join(' and ')} only` : `${models.length} models or groups only`),
    requests_per_minute !== null && `${requests_per_minute.toLocaleString('en-US')} requests per minute`,
    addresses && (addresses.length === 1 ? `from ${addresses[0]}` : `from ${addresses.length} address ranges`),
  ];
  return parts.filter((part) => typeof part === 'string').join(', ');
}

function State({ apiKey }: { apiKey: KeyView }) {
  const { state, ends_at, expires_at } = apiKey;
  const rules = rulesOf(apiKey);
  return (
    <Stack gap={2} align="flex-start">
      <Status of={state} />
      {rules !== '' && (
        <Text size="xs" c="dimmed" title={[...(apiKey.models ?? []), ...(apiKey.addresses ?? [])].join(', ')}>
          {rules}
        </Text>
      )}
      {expires_at !== null && state !== 'deleted' && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          {state === 'expired' ? 'ended ' : 'ends '}
          <Time at={expires_at} />
        </Text>
      )}
      {ends_at !== null && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          {state === 'ending' && 'works until '}
          <Time at={ends_at} />
        </Text>
      )}
    </Stack>
  );
}
