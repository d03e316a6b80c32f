import { Anchor, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { AuditLineView } from '../../../src/dashboard/views/settings.ts';
import { LinkTo } from './LinkTo.tsx';
import { ListTable } from './ListTable.tsx';
import { Time } from './Time.tsx';

/** Entries of the audit log; of all accounts, with links to those of one kind or one account. */
export function AuditTable({ entries, of_all = false }: { entries: AuditLineView[]; of_all?: boolean }) {
  return (
    <ListTable
      caption="Audit log, newest first"
      columns={[
        { name: 'Time' },
        { name: 'Actor' },
        { name: 'Action', main: true },
        ...(of_all ? [{ name: 'Account' }] : []),
        { name: 'Target' },
        { name: 'Details' },
      ]}
    >
      {entries.map((entry) => (
        <Row key={entry.id} entry={entry} of_all={of_all} />
      ))}
    </ListTable>
  );
}

function Row({ entry, of_all }: { entry: AuditLineView; of_all: boolean }) {
  const { at, actor, action, account_id, account_name, subject, details, address, names } = entry;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={at} ago />
        </Text>
      </Table.Td>
      <Table.Td maw={170}>
        <Text size="sm" truncate title={actor}>
          {actor}
        </Text>
        {address !== null && (
          <Text size="xs" c="dimmed" truncate>
            from {address}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        {of_all ? (
          <LinkTo href={`/admin/audit?action=${encodeURIComponent(action)}`} size="sm">
            {action}
          </LinkTo>
        ) : (
          <Text size="sm">{action}</Text>
        )}
      </Table.Td>
      {of_all && (
        <Table.Td maw={130}>
          {account_id === null ? (
            '–'
          ) : (
            <Anchor
              component={Link}
              to={`/admin/accounts/${account_id}`}
              size="sm"
              truncate
              display="block"
              title={account_id}
            >
              {account_name ?? account_id}
            </Anchor>
          )}
        </Table.Td>
      )}
      <Table.Td maw={130}>
        <Text size="sm" truncate title={subject ?? ''}>
          {subject === null || subject === account_id ? '–' : (names[subject] ?? subject)}
        </Text>
      </Table.Td>
      <Table.Td miw={220} maw={360}>
        {details === null || Object.keys(details).length === 0 ? (
          '–'
        ) : (
          <Text size="xs" style={{ overflowWrap: 'anywhere' }}>
            {detailsText(details, names)}
          </Text>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** `amount: 10.000000, project: Shop`. A name itself is shown as it is. */
function detailsText(details: Record<string, unknown>, names: Record<string, string>): string {
  const textOf = (field: string, value: unknown) => {
    if (typeof value !== 'string') return JSON.stringify(value);
    if (field === 'name' || field === 'reason') return value;
    return value
      .split(', ')
      .map((part) => names[part] ?? part)
      .join(', ');
  };
  return Object.entries(details)
    .map(([field, value]) => `${field.replaceAll('_', ' ')}: ${textOf(field, value)}`)
    .join(', ');
}
