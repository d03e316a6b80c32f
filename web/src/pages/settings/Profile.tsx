import { Button, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { addressOf, useSession } from '../../session.tsx';
import { Card } from '../../ui/Page.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Failed } from '../../ui/states.tsx';
import { ProveEmail } from '../home/ProveEmail.tsx';
import { SetUp } from '../home/SetUp.tsx';
import { role_words } from './roles.ts';

/** The person's name, address and accounts. */
export function Profile() {
  const { me } = useSession();
  return (
    <Stack>
      {me.user.is_new && <SetUp />}
      <ProveEmail />
      <Name />
      <Card title="Accounts you belong to">
        <ListTable
          caption="Accounts you belong to"
          columns={[{ name: 'Account' }, { name: 'Your role' }, { name: 'Currency' }]}
        >
          {me.accounts.map(({ id, name, role, currency, is_limited }) => (
            <Table.Tr key={id}>
              <Table.Td>{name}</Table.Td>
              <Table.Td>
                {role === 'operator' ? 'Operator' : role_words[role].name}
                <Text size="xs" c="dimmed">
                  {role === 'operator'
                    ? 'Sees it as a viewer does.'
                    : is_limited
                      ? 'Sees some projects alone.'
                      : role_words[role].may}
                </Text>
              </Table.Td>
              <Table.Td>{currency}</Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      </Card>
    </Stack>
  );
}

function Name() {
  const { me } = useSession();
  const queries = useQueryClient();
  const form = useForm({ mode: 'uncontrolled', initialValues: { name: me.user.name } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: { name: string }) => api.post('/auth/update-user', { name: values.name.trim() }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['me'] });
      notifications.show({ message: 'Your name is saved.' });
    },
  });
  return (
    <Card title="You">
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack maw={480}>
          <TextInput label="Name" autoComplete="name" required maxLength={100} {...form.getInputProps('name')} />
          {!me.user.is_new && (
            <div>
              <Text size="sm" fw={500}>
                E-mail address
              </Text>
              <Text size="sm">{addressOf(me.user) ?? 'None yet'}</Text>
            </div>
          )}
          {error && <Failed error={error} />}
          <Group>
            <Button type="submit" loading={isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
