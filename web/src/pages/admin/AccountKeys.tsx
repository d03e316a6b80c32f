import { Button, Code, Stack, Table, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccountPage } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { optionalAmount } from '../../ui/amount.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Time } from '../../ui/Time.tsx';

type Key = AdminAccountPage['keys'][number];

/** Spending and limit of each key this month. */
export function AccountKeys({ account }: { account: AdminAccountPage }) {
  const [limiting, setLimiting] = useState<Key>();
  const { keys } = account;
  return (
    <Card title="Keys">
      {keys.length === 0 ? (
        <Text c="dimmed">No active keys.</Text>
      ) : (
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
      )}
      {limiting && <LimitKey account={account} apiKey={limiting} close={() => setLimiting(undefined)} />}
    </Card>
  );
}

function LimitKey({ account, apiKey, close }: { account: AdminAccountPage; apiKey: Key; close: () => void }) {
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
