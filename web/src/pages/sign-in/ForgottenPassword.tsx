import { Anchor, Button, Code, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { Failed } from '../../ui/states.tsx';
import { Gate } from './Gate.tsx';

/** Says the same whether the address is known or not. */
export function ForgottenPassword({ back }: { back: () => void }) {
  const form = useForm({ mode: 'uncontrolled', initialValues: { email: '' } });
  const { mutate, error, isPending, isSuccess } = useMutation({
    mutationFn: (values: { email: string }) => api.post('/auth/request-password-reset', values),
  });
  return (
    <Gate title="A new password">
      {isSuccess ? (
        <Text>
          If the address is known and this service sends mail, a link is on its way; it works for 15 minutes. Without
          mail, whoever runs the service makes one with <Code>npm run -s medley -- login-link</Code>.
        </Text>
      ) : (
        <form onSubmit={form.onSubmit((values) => mutate(values))}>
          <Stack>
            <TextInput
              label="E-mail address"
              type="email"
              autoComplete="username"
              required
              {...form.getInputProps('email')}
            />
            {error && <Failed error={error} />}
            <Button type="submit" loading={isPending}>
              Send a link
            </Button>
          </Stack>
        </form>
      )}
      <Anchor component="button" type="button" size="sm" onClick={back}>
        Back to signing in
      </Anchor>
    </Gate>
  );
}
