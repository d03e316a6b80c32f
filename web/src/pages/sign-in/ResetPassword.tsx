import { Anchor, Button, PasswordInput, Stack, Text } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { below } from '../../below.ts';
import { api } from '../../api.ts';
import { password_rule } from '../../ui/password.ts';
import { Failed } from '../../ui/states.tsx';
import { EntryPage } from './EntryPage.tsx';

/** The other end of the link in the mail. */
export function ResetPassword() {
  const token = new URLSearchParams(location.search).get('token') ?? '';
  const form = useForm({ mode: 'uncontrolled', initialValues: { newPassword: '' } });
  const { mutate, error, isPending, isSuccess } = useMutation({
    mutationFn: (values: { newPassword: string }) => api.post('/auth/reset-password', { ...values, token }),
  });
  return (
    <EntryPage title="Choose a new password" about="You are signed out everywhere else.">
      {isSuccess ? (
        <Text>
          Done. <Anchor href={below('/sign-in')}>Sign in with it</Anchor>.
        </Text>
      ) : (
        <form onSubmit={form.onSubmit((values) => mutate(values))}>
          <Stack>
            <PasswordInput
              label="New password"
              description={password_rule}
              minLength={10}
              autoComplete="new-password"
              required
              {...form.getInputProps('newPassword')}
            />
            {error && <Failed error={error} />}
            <Button type="submit" loading={isPending}>
              Save
            </Button>
          </Stack>
        </form>
      )}
    </EntryPage>
  );
}
