import { Button, Stack, Table, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { SessionView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { Card } from '../../ui/Page.tsx';
import { atFirstClick } from '../../ui/first-click.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { browserText } from './browser-text.ts';

/** The person's sessions. */
export function Sessions() {
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ['sessions'],
    queryFn: ({ signal }) => api.get<{ data: SessionView[] }>('/dash/sessions', { signal }),
  });
  const end = useMutation({
    mutationFn: (id: string | undefined) =>
      id === undefined ? api.post('/dash/sessions/end-others') : api.delete(`/dash/sessions/${encodeURIComponent(id)}`),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
  const has_others = (query.data?.data.length ?? 0) > 1;
  return (
    <Card
      title="Where you are signed in"
      side={
        has_others && (
          <Button size="xs" variant="default" loading={end.isPending} onClick={() => end.mutate(undefined)}>
            Sign out everywhere else
          </Button>
        )
      }
    >
      <Stack>
        {end.error && <Failed error={end.error} />}
        <Loaded query={query} height={120}>
          {({ data }) => (
            <ListTable
              caption="Where you are signed in"
              columns={[
                { name: 'Browser' },
                { name: 'Address' },
                { name: 'Last used' },
                { name: 'Action', hidden: true },
              ]}
            >
              {data.map((session) => (
                <Row key={session.id} session={session} end={end.mutate} />
              ))}
            </ListTable>
          )}
        </Loaded>
      </Stack>
    </Card>
  );
}

function Row({ session, end }: { session: SessionView; end: (id: string) => void }) {
  const { id, user_agent, address, used_at, is_this } = session;
  const browser = browserText(user_agent);
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" title={user_agent ?? undefined}>
          {browser}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{address ?? '–'}</Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={used_at} ago />
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        {is_this ? (
          <Status of="active" label="This one" />
        ) : (
          <Button
            size="compact-sm"
            variant="default"
            onClick={atFirstClick(() => end(id))}
            aria-label={`Sign out ${browser}`}
          >
            Sign out
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
