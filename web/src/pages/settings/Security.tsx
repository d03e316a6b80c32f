import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { useSession } from '../../session.tsx';
import { Card } from '../../ui/Page.tsx';
import { password_rule } from '../../ui/password.ts';
import { Failed } from '../../ui/states.tsx';
import { SetUp } from '../home/SetUp.tsx';
import { LinkedSignIns } from './LinkedSignIns.tsx';
import { Passkeys } from './Passkeys.tsx';
import { Sessions } from './Sessions.tsx';
import { TwoFactor } from './TwoFactor.tsx';

/** Ways to sign in, and sessions. */
export function Security() {
  const { me } = useSession();
  return (
    <Stack>
      {me.user.is_new ? (
        <SetUp />
      ) : (
        <>
          <Passkeys />
          {me.user.has_password && <Password />}
          <TwoFactor on={me.user.two_factor} />
        </>
      )}
      <LinkedSignIns />
      <Sessions />
    </Stack>
  );
}

type Values = { currentPassword: string; newPassword: string };

const nothing: Values = { currentPassword: '', newPassword: '' };

function Password() {
  const { me } = useSession();
  const queries = useQueryClient();
  const form = useForm({ mode: 'uncontrolled', initialValues: nothing });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: Values) => api.post('/auth/change-password', values),
    onSuccess: async () => {
      form.reset();
      notifications.show({ message: 'Your password is changed, and you are signed out everywhere else.' });
      await queries.invalidateQueries({ queryKey: ['sessions'] });
    },
    gcTime: 0,
  });
  return (
    <Card title="Password">
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack maw={480}>
          <input type="hidden" autoComplete="username" value={me.user.email} readOnly />
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            required
            key={form.key('currentPassword')}
            {...form.getInputProps('currentPassword')}
          />
          <PasswordInput
            label="New password"
            description={password_rule}
            autoComplete="new-password"
            minLength={10}
            required
            key={form.key('newPassword')}
            {...form.getInputProps('newPassword')}
          />
          {error && <Failed error={error} />}
          <Group>
            <Button type="submit" loading={isPending}>
              Change the password
            </Button>
          </Group>
          <Text size="xs" c="dimmed">
            A new password signs you out everywhere else. Forgotten? Sign out, and ask for a new one on the page where
            you sign in.
          </Text>
        </Stack>
      </form>
    </Card>
  );
}
