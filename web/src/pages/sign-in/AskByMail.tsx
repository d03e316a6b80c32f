import { Anchor, Button, Code, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { Failed } from '../../ui/states.tsx';
import { EntryPage } from './EntryPage.tsx';

type Back = { back: () => void };

export function ForgottenPassword({ back }: Back) {
  return <AskByMail title="A new password" path="/auth/request-password-reset" back={back} />;
}

/** Offers a link by mail, also to people who cannot use their password because somebody else tries it. */
export function MailedLink({ back }: Back) {
  return <AskByMail title="Sign in by a link" path="/auth/sign-in/mail" back={back} />;
}

/** Asks for a mail with a link. Says the same whether the address is known or not. */
function AskByMail({ title, path, back }: Back & { title: string; path: string }) {
  const form = useForm({ mode: 'uncontrolled', initialValues: { email: '' } });
  const { mutate, error, isPending, isSuccess } = useMutation({
    mutationFn: (values: { email: string }) => api.post(path, values),
  });
  return (
    <EntryPage title={title}>
      {isSuccess ? (
        <Text>
          If the address is known and this service sends mail, a link is on its way; it works for 15 minutes. Without
          mail, the operator creates one with Medley's command <Code>login-link</Code>.
        </Text>
      ) : (
        <form onSubmit={form.onSubmit((values) => mutate(values))}>
          <Stack>
            <TextInput
              label="E-mail address"
              type="email"
              autoComplete="username"
              required
              autoFocus
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
    </EntryPage>
  );
}
