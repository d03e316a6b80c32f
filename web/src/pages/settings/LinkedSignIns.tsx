import { Button, Stack, Table, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { LinkedSignInView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { IssuerButtons, IssuerProblem, useWaysIn } from '../../ui/Issuers.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { atFirstClick } from '../../ui/first-click.ts';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';

/** The issuers, such as Google, by which this person signs in. Nothing where there are none. */
export function LinkedSignIns() {
  const queries = useQueryClient();
  const ways = useWaysIn();
  const query = useQuery({
    queryKey: ['sign-ins'],
    queryFn: ({ signal }) => api.get<{ data: LinkedSignInView[] }>('/dash/sign-ins', { signal }),
  });
  const end = useMutation({
    mutationFn: (id: string) => api.delete(`/dash/sign-ins/${encodeURIComponent(id)}`),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['sign-ins'] }),
  });
  const issuers = ways.data?.issuers ?? [];
  const linked = query.data?.data ?? [];
  if (issuers.length === 0 && linked.length === 0) return null;
  const others = issuers.filter(({ id }) => linked.every(({ issuer_id }) => issuer_id !== id));
  return (
    <Card title="Sign-ins of other services">
      <Stack>
        <IssuerProblem issuers={issuers} />
        {end.error && <Failed error={end.error} />}
        <Loaded query={query} height={80}>
          {({ data }) =>
            data.length === 0 ? (
              <Text size="sm">
                You are connected with none yet. Connect one, and it signs you in without a password.
              </Text>
            ) : (
              <ListTable
                caption="Sign-ins of other services"
                columns={[
                  { name: 'Service' },
                  { name: 'Address there' },
                  { name: 'Last used' },
                  { name: 'Action', hidden: true },
                ]}
              >
                {data.map((each) => (
                  <Row key={each.id} linked={each} end={end.mutate} />
                ))}
              </ListTable>
            )
          }
        </Loaded>
        {others.length > 0 && (
          <Stack align="flex-start">
            <IssuerButtons issuers={others} purpose="link" word="Connect" />
          </Stack>
        )}
      </Stack>
    </Card>
  );
}

function Row({ linked, end }: { linked: LinkedSignInView; end: (id: string) => void }) {
  const { id, name, email, used_at, issuer_id } = linked;
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm">{issuer_id === null ? `${name} (no longer offered)` : name}</Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{email ?? '–'}</Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{used_at === null ? '–' : <Time at={used_at} ago />}</Text>
      </Table.Td>
      <Table.Td ta="right">
        <Button
          size="compact-sm"
          variant="default"
          onClick={atFirstClick(() => end(id))}
          aria-label={`Disconnect ${name}`}
        >
          Disconnect
        </Button>
      </Table.Td>
    </Table.Tr>
  );
}
