import { Button, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccountPage } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { Trail } from '../../ui/Trail.tsx';
import { roleName } from '../../ui/roles.ts';
import { BlockAccount, DeleteAccount, HandOver } from './AccountDialogs.tsx';
import { AccountKeys } from './AccountKeys.tsx';
import { CreditAccount } from './CreditAccount.tsx';
import { useChange } from './useChange.ts';
import { useLook } from './useLook.ts';

const route = getRouteApi('/signed-in/operating/admin/accounts/$id');

type Doing = 'credit' | 'block' | 'delete' | 'link' | undefined;

/** One account as operators see it. */
export function AccountPage() {
  const { id } = route.useParams();
  const [doing, setDoing] = useState<Doing>();
  const query = useQuery({
    queryKey: ['admin', 'account', id],
    queryFn: ({ signal }) => api.get<AdminAccountPage>(`/dash/admin/accounts/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: 15_000,
  });
  const close = () => setDoing(undefined);
  const account = query.data;
  return (
    <Page
      title={account?.name ?? 'Account'}
      about={<Trail list="Accounts" href="/admin/accounts" id={id} />}
      actions={account && <Actions account={account} setDoing={setDoing} />}
    >
      <Loaded query={query} height={420}>
        {(shown) => <Parts account={shown} />}
      </Loaded>
      {account && doing === 'credit' && <CreditAccount account={account} close={close} />}
      {account && doing === 'block' && <BlockAccount account={account} close={close} />}
      {account && doing === 'delete' && <DeleteAccount account={account} close={close} />}
      {account && doing === 'link' && <HandOver account={account} close={close} />}
    </Page>
  );
}

function Actions({ account, setDoing }: { account: AdminAccountPage; setDoing: (doing: Doing) => void }) {
  const blocked = account.status === 'blocked';
  return (
    <>
      <LookButton id={account.id} />
      <Button variant="default" onClick={() => setDoing('link')}>
        Sign-in link
      </Button>
      <Button variant="default" onClick={() => setDoing('block')}>
        {blocked ? 'Unblock' : 'Block'}
      </Button>
      {Number(account.balance.exact) === 0 && (
        <Button variant="default" onClick={() => setDoing('delete')}>
          Delete
        </Button>
      )}
      <Button color="orange" onClick={() => setDoing('credit')}>
        Credit or debit
      </Button>
    </>
  );
}

/** Its pages, as its people see them. */
function LookButton({ id }: { id: string }) {
  const { open, error, isPending, isOwn } = useLook();
  return (
    <>
      <Button variant="default" onClick={() => open({ account_id: id, to: '/' })} loading={isPending}>
        {isOwn(id) ? 'Open' : 'View as'}
      </Button>
      {error && <Failed error={error} />}
    </>
  );
}

function Parts({ account }: { account: AdminAccountPage }) {
  const { id, status, available, held, balance, spend, failures, created_at } = account;
  return (
    <Stack gap="lg">
      <Card>
        <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }}>
          <Figure name="Available" value={<Money cost={available} />} />
          <Figure name="Balance" value={<Money cost={balance} />} />
          <Figure name="Held" value={<Money cost={held} />} note="for running work" />
          <Figure name="Spent" value={<Money cost={spend} />} note="in 30 days" />
          <Figure
            name="Failures"
            value={failures.counted.toLocaleString('en-US')}
            note={failures.counted === 0 ? failuresNote(failures) : <ForgetFailures account={account} />}
          />
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              Status
            </Text>
            <Status of={status} />
            <Text size="xs" c="dimmed" mt={4}>
              created <Time at={created_at} ago />
            </Text>
          </div>
        </SimpleGrid>
      </Card>
      <Members account={account} />
      <AccountKeys account={account} />
      <Group>
        <LinkTo href={`/admin/calls?account=${id}`}>Calls of this account</LinkTo>
        <LinkTo href={`/admin/audit?account=${id}`}>Audit log of this account</LinkTo>
        <LinkTo href={`/admin/deliveries?account=${id}`}>Deliveries of this account</LinkTo>
      </Group>
    </Stack>
  );
}

function failuresNote({ counted, limit }: AdminAccountPage['failures']): string {
  if (counted >= limit) return 'in 24 hours: new generations are paused';
  return `in 24 hours; ${limit.toLocaleString('en-US')} pause new generations`;
}

/** An account that is paused may go on. */
function ForgetFailures({ account: { id, failures } }: { account: AdminAccountPage }) {
  const change = useChange();
  return (
    <Stack gap={4} align="flex-start">
      <span>{failuresNote(failures)}</span>
      <Button
        size="compact-xs"
        variant="default"
        loading={change.isPending}
        onClick={() => change.make(`accounts/${id}/forget-failures`, {})}
      >
        Reset the count
      </Button>
      {change.error && <Failed error={change.error} />}
    </Stack>
  );
}

function Members({ account: { members } }: { account: AdminAccountPage }) {
  return (
    <Card title="People">
      {members.length === 0 ? (
        <Text c="dimmed">Nobody yet. A sign-in link creates its first owner.</Text>
      ) : (
        <ListTable caption="People" columns={[{ name: 'Name' }, { name: 'E-mail' }, { name: 'Role' }, { name: '2FA' }]}>
          {members.map(({ name, email, role, two_factor }) => (
            <Table.Tr key={email}>
              <Table.Td maw={240}>
                <Text size="sm" truncate>
                  {name}
                </Text>
              </Table.Td>
              <Table.Td maw={280}>
                <Text size="sm" truncate title={email}>
                  {email}
                </Text>
              </Table.Td>
              <Table.Td>{roleName(role)}</Table.Td>
              <Table.Td>{two_factor ? 'on' : 'off'}</Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      )}
    </Card>
  );
}
