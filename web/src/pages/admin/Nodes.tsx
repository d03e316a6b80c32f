import { Button, Table, Text } from '@mantine/core';
import type { AdminNode } from '../../../../src/dashboard/views/admin.ts';
import { durationText } from '../../ui/duration.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { useChange } from './useChange.ts';

const roles: Record<string, string> = { all: 'API and worker', api: 'API', worker: 'Worker' };

/** The processes of the service, and which of them take work. */
export function Nodes({ nodes }: { nodes: readonly AdminNode[] }) {
  const change = useChange();
  return (
    <Card title="Workers">
      {change.error && <Failed error={change.error} />}
      {nodes.length === 0 ? (
        <Text c="dimmed">No nodes online.</Text>
      ) : (
        <ListTable
          caption="Processes of the service, the newest first"
          columns={[
            { name: 'Process' },
            { name: 'State' },
            { name: 'Running jobs', align: 'right' },
            { name: 'Version' },
            { name: 'Since' },
            { name: 'Last seen' },
            { name: 'Actions', hidden: true },
          ]}
        >
          {nodes.map((node) => (
            <Table.Tr key={node.id}>
              <Table.Td maw={220}>
                <Text size="sm" truncate title={node.name}>
                  {node.name}
                </Text>
                <Text size="xs" c="dimmed">
                  {roles[node.role] ?? node.role}
                </Text>
              </Table.Td>
              <Table.Td>
                <Status {...lookOf(node)} />
              </Table.Td>
              <Table.Td ta="right" className="figure">
                {node.running.toLocaleString('en-US')}
              </Table.Td>
              <Table.Td>{node.version}</Table.Td>
              <Table.Td style={{ whiteSpace: 'nowrap' }}>
                <Time at={node.started_at} ago />
              </Table.Td>
              <Table.Td style={{ whiteSpace: 'nowrap' }}>
                {node.is_alive ? 'just now' : `${durationText(node.silent_s * 1000)} ago`}
              </Table.Td>
              <Table.Td ta="right">
                {node.role !== 'api' && node.is_alive && (
                  <Button
                    size="xs"
                    variant="default"
                    loading={change.isPending}
                    onClick={() => change.make(`nodes/${node.id}/pause`, { paused: !node.is_paused })}
                    aria-label={`${node.is_paused ? 'Resume' : 'Pause'}: ${node.name}`}
                  >
                    {node.is_paused ? 'Resume' : 'Pause'}
                  </Button>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      )}
      <Text size="xs" c="dimmed" mt="xs">
        A paused worker takes no new jobs and finishes its running ones; scheduled jobs continue. The pause ends with
        the process.
      </Text>
    </Card>
  );
}

function lookOf({ is_alive, is_paused, role }: AdminNode): { of: string; label: string } {
  if (!is_alive) return { of: 'failed', label: 'Offline' };
  if (is_paused) return { of: 'paused', label: 'Paused' };
  return { of: 'active', label: role === 'api' ? 'Serves requests' : 'Takes jobs' };
}
