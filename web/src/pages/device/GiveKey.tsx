import { Alert, Button, Group, Select, Stack, Table, Text, TextInput } from '@mantine/core';
import { useForm, type UseFormReturnType } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { DeviceLoginView } from '../../../../src/dashboard/views/device-login.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { optionalAmount } from '../../ui/amount.ts';
import { fieldErrors, type FieldErrors } from '../../ui/field-error.ts';
import { key_ends, MonthlyLimit, never } from '../../ui/KeyFields.tsx';
import { useDenial } from '../../ui/MayButton.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';

type Props = { code: string; program: DeviceLoginView; onGiven: () => void; onRefused: () => void };
type Values = { name: string; limit: string; ends: string };

/** Shows who asks, and gives it a key of the account that is looked at. */
export function GiveKey({ code, program, onGiven, onRefused }: Props) {
  const { me, account, base, choose } = usePlace();
  const denial = useDenial('keys');
  const queries = useQueryClient();
  const name = `${program.client} on ${program.device}`.slice(0, 100);
  const form = useForm<Values>({ mode: 'uncontrolled', initialValues: { name, limit: '', ends: never } });
  const give = useMutation({
    mutationFn: (values: Values) =>
      api.post(`${base}/device-login`, {
        code,
        name: values.name,
        limit: optionalAmount(values.limit),
        expires_at: values.ends === never ? null : values.ends,
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'keys'] });
      onGiven();
    },
  });
  const refuse = useMutation({ mutationFn: () => api.post('/dash/device-login/deny', { code }), onSuccess: onRefused });
  const problem = fieldErrors(give.error ?? refuse.error, {
    name: 'Name of the key',
    limit: 'Monthly limit',
    expires_at: 'Expires',
  });
  return (
    <form onSubmit={form.onSubmit((values) => give.mutate(values))}>
      <Stack>
        <Facts program={program} />
        {!program.is_same_address && (
          <Alert color="yellow" title="The program is somewhere else">
            <Text size="sm">
              It asks from {program.address}, and you are at another address. That is right for a server that you use
              from here. Else refuse it.
            </Text>
          </Alert>
        )}
        {me.accounts.length > 1 && (
          <Select
            label="Account"
            description="Pays for what the program does."
            data={me.accounts.map(({ id, name: label }) => ({ value: id, label }))}
            value={account.id}
            onChange={(id) => id !== null && choose(id)}
            allowDeselect={false}
          />
        )}
        <KeyFields form={form} currency={account.currency} problem={problem} />
        {denial !== undefined && <Alert color="yellow">{denial}</Alert>}
        {problem.other && <Failed error={problem.other} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => refuse.mutate()} loading={refuse.isPending}>
            Refuse
          </Button>
          <Button type="submit" loading={give.isPending} disabled={denial !== undefined}>
            Give a key
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

type FieldProps = { form: UseFormReturnType<Values>; currency: string; problem: FieldErrors };

function KeyFields({ form, currency, problem }: FieldProps) {
  return (
    <>
      <TextInput
        label="Name of the key"
        description="Names appear in usage and activity."
        required
        maxLength={100}
        autoComplete="off"
        {...form.getInputProps('name')}
        error={problem.of('name')}
      />
      <MonthlyLimit currency={currency} {...form.getInputProps('limit')} error={problem.of('limit')} />
      <Select
        label="Expires"
        data={key_ends}
        allowDeselect={false}
        key={form.key('ends')}
        {...form.getInputProps('ends')}
        error={problem.of('expires_at')}
      />
    </>
  );
}

/** Names that the program has sent are shown as text of its own. */
function Facts({ program: { client, device, address, created_at, scopes } }: { program: DeviceLoginView }) {
  const rows = [
    ['Program', client],
    ['Machine', device],
    ['Address', address],
    ['Asked', <Time key="asked" at={created_at} ago />],
    ['May use', scopes === null ? 'chat, media and read' : scopes.join(', ')],
  ] as const;
  return (
    <Table variant="vertical" withTableBorder aria-label="The program">
      <Table.Tbody>
        {rows.map(([label, value]) => (
          <Table.Tr key={label}>
            <Table.Th w={110}>{label}</Table.Th>
            <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
