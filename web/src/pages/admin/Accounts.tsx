import { Anchor, Button, Code, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccount, AdminAccounts } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { askedFor } from '../../shell/found.ts';
import { Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { CreateAccount } from './CreateAccount.tsx';
import { SearchField } from '../../ui/SearchField.tsx';

const route = getRouteApi('/signed-in/operating/admin/accounts');

/** The page of all accounts and their balances. */
export function Accounts() {
  const { search } = route.useSearch();
  const navigate = useNavigate();
  const [creating, setCreating] = useState(false);
  const set = (text: string | undefined) =>
    void navigate({
      to: '/admin/accounts',
      search: text === undefined ? {} : { search: askedFor(text) },
      replace: true,
    });
  const query = useInfiniteQuery({
    queryKey: ['admin', 'accounts', search],
    queryFn: ({ pageParam, signal }) =>
      api.get<AdminAccounts>(`/dash/admin/accounts${queryOf({ search, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: AdminAccounts) => (page.has_more ? page.data.at(-1)?.id : undefined),
  });
  const create = (
    <Button color="orange" onClick={() => setCreating(true)}>
      Create an account
    </Button>
  );
  return (
    <Page title="Accounts" about="The accounts of this service and their balances." actions={create}>
      <Filters isFiltered={search !== undefined} clear={() => set(undefined)}>
        <SearchField label="Search" placeholder="Name, id, or end of a key" value={search} onChange={set} />
      </Filters>
      <Pages
        query={query}
        empty={
          search === undefined ? (
            <Empty title="No accounts yet" action={create}>
              An account has a balance, keys and people.
            </Empty>
          ) : (
            <Empty title="No account matches">
              Search for a part of its name, for its full id, for one of its people, or for the last four characters of
              a key.
            </Empty>
          )
        }
      >
        {(accounts) => <AccountTable accounts={accounts} />}
      </Pages>
      {creating && (
        <CreateAccount currencies={query.data?.pages[0]?.currencies ?? []} close={() => setCreating(false)} />
      )}
    </Page>
  );
}

function AccountTable({ accounts }: { accounts: AdminAccount[] }) {
  return (
    <ListTable
      caption="Accounts, newest first"
      columns={[
        { name: 'Name' },
        { name: 'Status' },
        { name: 'Available', align: 'right' },
        { name: 'Held', align: 'right' },
        { name: 'Spent in 30 days', align: 'right' },
        { name: 'Created' },
      ]}
    >
      {accounts.map(({ id, name, status, available, held, spend, created_at }) => (
        <Table.Tr key={id}>
          <Table.Td maw={{ base: 190, sm: 320 }}>
            <Stack gap={2} align="flex-start">
              <Anchor component={Link} to={`/admin/accounts/${id}`} size="sm" fw={600} truncate maw="100%">
                {name}
              </Anchor>
              <Code>{id}</Code>
            </Stack>
          </Table.Td>
          <Table.Td>
            <Status of={status} />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={available} />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={held} />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={spend} />
          </Table.Td>
          <Table.Td style={{ whiteSpace: 'nowrap' }}>
            <Text size="sm">
              <Time at={created_at} ago />
            </Text>
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}
