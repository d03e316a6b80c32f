import { Table, Text } from '@mantine/core';
import type { AdminLimit } from '../../../../src/dashboard/views/admin.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { sizeText } from '../../ui/Media.tsx';
import { Card } from '../../ui/Page.tsx';
import { Status } from '../../ui/Status.tsx';

/** The limits of the answering process: what is in use, and what waits. */
export function Limits({ limits }: { limits: readonly AdminLimit[] }) {
  return (
    <Card title="Limits in this process">
      <ListTable
        caption="Limits in this process"
        columns={[
          { name: 'Limit' },
          { name: 'In use', align: 'right' },
          { name: 'Waiting', align: 'right' },
          { name: 'Maximum', align: 'right' },
          { name: 'For one account', align: 'right' },
        ]}
      >
        {limits.map((limit) => (
          <Table.Tr key={limit.name}>
            <Table.Td>{limit.name}</Table.Td>
            <Table.Td ta="right" className="figure">
              <Amount of={limit} value={limit.in_use} />
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {limit.waiting > 0 ? <Status of="warning" label={limit.waiting.toLocaleString('en-US')} /> : <Zero />}
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {limit.bound === null ? '–' : <Amount of={limit} value={limit.bound} />}
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {limit.key_bound === null ? '–' : limit.key_bound === 'fair' ? 'fair share' : limit.key_bound}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
      <Text size="xs" c="dimmed" mt="xs">
        Accounts take turns. A fair share is as much as is left free: half of all for one account alone, a third for
        each of two. Chat calls are counted for each API key. Workers in other processes have limits of their own.
      </Text>
    </Card>
  );
}

function Amount({ of: { unit }, value }: { of: AdminLimit; value: number }) {
  if (value === 0) return <Zero />;
  return unit === 'bytes' ? sizeText(value).replace(' ', '\u00a0') : value.toLocaleString('en-US');
}

function Zero() {
  return (
    <Text span inherit c="dimmed">
      0
    </Text>
  );
}
