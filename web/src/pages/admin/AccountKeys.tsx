import { Button, Code, Stack, Table, Text, TextInput } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccountPage } from '../../../../src/dashboard/views/admin.ts';
import type { KeyPageView, KeyView } from '../../../../src/dashboard/views/keys.ts';
import { api, queryOf } from '../../api.ts';
import { askedFor } from '../../shell/found.ts';
import { optionalAmount } from '../../ui/amount.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { Time } from '../../ui/Time.tsx';

/** Spending and limit of each key this month. */
export function AccountKeys({ account }: { account: AdminAccountPage }) {
  const [limiting, setLimiting] = useState<KeyView>();
  const [search, setSearch] = useState<string>();
  const query = useInfiniteQuery({
    queryKey: ['admin', 'account', account.id, 'keys', search],
    queryFn: ({ pageParam, signal }) =>
      api.get<KeyPageView>(
        `/dash/admin/accounts/${account.id}/keys${queryOf({ search, state: 'present', after: pageParam })}`,
        { signal },
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: KeyPageView) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 15_000,
  });
  const isLong = query.hasNextPage || search !== undefined;
  return (
    <Card title="Keys">
      <Stack gap="sm">
        {isLong && (
          <SearchField
            label="Search keys"
            placeholder="Name, id, or end of a key"
            value={search}
            onChange={(text) => setSearch(text === undefined ? undefined : askedFor(text))}
          />
        )}
        <Pages
          query={query}
          more="Show more"
          empty={<Text c="dimmed">{search === undefined ? 'No active keys.' : 'No key matches.'}</Text>}
        >
          {(keys) => <Keys keys={keys} setLimiting={setLimiting} />}
        </Pages>
      </Stack>
      {limiting && <LimitKey account={account} apiKey={limiting} close={() => setLimiting(undefined)} />}
    </Card>
  );
}

function Keys({ keys, setLimiting }: { keys: KeyView[]; setLimiting: (key: KeyView) => void }) {
  return (
    <ListTable
      caption="Active keys"
      columns={[
        { name: 'Name' },
        { name: 'Key' },
        { name: 'Created' },
        { name: 'Spent this month', align: 'right' },
        { name: 'Limit', align: 'right' },
        { name: 'Actions', hidden: true },
      ]}
    >
      {keys.map((key) => (
        <Table.Tr key={key.id}>
          <Table.Td maw={260}>
            <Text size="sm" truncate>
              {key.name}
            </Text>
          </Table.Td>
          <Table.Td>
            <Code style={{ whiteSpace: 'nowrap' }}>{key.shown_as}</Code>
          </Table.Td>
          <Table.Td style={{ whiteSpace: 'nowrap' }}>
            <Time at={key.created_at} ago />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={key.spent} />
          </Table.Td>
          <Table.Td ta="right">{key.limit === null ? 'none' : <Money cost={key.limit} />}</Table.Td>
          <Table.Td ta="right">
            <Button
              size="xs"
              variant="default"
              onClick={() => setLimiting(key)}
              aria-label={`Change the limit of ${key.name}`}
            >
              Limit
            </Button>
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}

function LimitKey({ account, apiKey, close }: { account: AdminAccountPage; apiKey: KeyView; close: () => void }) {
  const [limit, setLimit] = useState(apiKey.limit?.exact.replace(/(\.\d\d)(\d*?)0*$/, '$1$2') ?? '');
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      api.post(`/dash/admin/accounts/${account.id}/keys/${apiKey.id}/limit`, {
        limit: optionalAmount(limit),
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['admin'] });
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={`Limit of ${apiKey.name}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack>
          <TextInput
            label={`Monthly limit in ${account.currency}`}
            description="Maximum spending per calendar month (UTC). Empty: no limit. The account's audit log shows the change."
            inputMode="decimal"
            placeholder="No limit"
            autoComplete="off"
            maxLength={20}
            value={limit}
            onChange={({ currentTarget }) => setLimit(currentTarget.value)}
            data-autofocus
          />
          <FormEnd word="Save" color="orange" isPending={isPending} error={error} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
