import { Button, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { useSession } from '../../session.tsx';
import { fieldErrors } from '../../ui/field-error.ts';
import { Modal } from '../../ui/Modal.tsx';
import { password_rule } from '../../ui/password.ts';
import { Failed } from '../../ui/states.tsx';

/** The dialog in which a person gives a name, an address and a password. */
export function SetUpForm({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const form = useForm({ mode: 'uncontrolled', initialValues: { name: '', email: '', password: '' } });
  const { me } = useSession();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: { name: string; email: string; password: string }) => api.post('/auth/set-up', values),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['me'] });
      close();
    },
  });
  const problem = fieldErrors(error, { name: 'Your name', email: 'E-mail address', password: 'Password' });
  return (
    <Modal opened onClose={close} title="Your way back in" centered>
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack>
          <TextInput
            label="Your name"
            autoComplete="name"
            required
            maxLength={100}
            data-autofocus
            {...form.getInputProps('name')}
            error={problem.of('name')}
          />
          <TextInput
            label="E-mail address"
            {...(me.mails && { description: 'A link is sent to it. You sign in with it once you have followed that.' })}
            type="email"
            autoComplete="username"
            required
            {...form.getInputProps('email')}
            error={problem.of('email')}
          />
          <PasswordInput
            label="Password"
            description={password_rule}
            minLength={10}
            autoComplete="new-password"
            required
            {...form.getInputProps('password')}
            error={problem.of('password')}
            aria-invalid={problem.of('password') !== undefined} // the library marks other fields, not this one
          />
          {problem.other && <Failed error={problem.other} />}
          <Button type="submit" loading={isPending}>
            Save
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}
