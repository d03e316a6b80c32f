import { Alert, Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { addressOf, useSession } from '../../session.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';

/** An address counts once its link was followed; nothing to say where it was, or where the service sends no mail. */
export function ProveEmail() {
  const { me } = useSession();
  const { email_proved, email_claim, is_new } = me.user;
  const own = addressOf(me.user);
  const [open, { open: show, close }] = useDisclosure();
  const ask = useAsk();
  if (is_new || !me.mails || (email_proved && email_claim === null)) return null;
  const address = email_claim ?? own ?? null;
  return (
    <Alert variant="light" title="Confirm your e-mail address">
      <Stack gap="xs">
        <Text size="sm">
          {email_claim !== null &&
            `A link was sent to ${email_claim}. Follow it within a day, and you can sign in with this address.`}
          {email_claim === null &&
            own !== undefined &&
            `Nobody has confirmed ${own} yet. Until you do, you get no mail about this account, and its owner can take it.`}
          {address === null && 'You have no e-mail address, so you cannot sign in again with a password.'}
        </Text>
        {ask.error && !open && <Failed error={ask.error} />}
        <Group gap="xs">
          {address !== null && (
            <Button size="xs" loading={ask.isPending} onClick={() => ask.mutate(address)}>
              {email_claim === null ? 'Send me a link' : 'Send it again'}
            </Button>
          )}
          <Button size="xs" variant="default" onClick={show}>
            {address === null ? 'Give an address' : 'Another address'}
          </Button>
        </Group>
      </Stack>
      <Modal opened={open} onClose={close} title="Your e-mail address">
        <AddressForm close={close} />
      </Modal>
    </Alert>
  );
}

/** Asks the service to mail the link that confirms an address. */
function useAsk(then?: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (email: string) => api.post('/auth/email', { email }),
    onSuccess: async (_answer, email) => {
      notifications.show({ message: `A link is on its way to ${email}.` });
      await queries.invalidateQueries({ queryKey: ['me'] });
      then?.();
    },
  });
}

/** The present address stays until the link was followed. */
function AddressForm({ close }: { close: () => void }) {
  const form = useForm({ mode: 'uncontrolled', initialValues: { email: '' } });
  const { mutate, error, isPending } = useAsk(close);
  return (
    <form onSubmit={form.onSubmit(({ email }) => mutate(email))}>
      <Stack>
        <TextInput
          label="E-mail address"
          description="A link is sent to it. Once you follow it, you sign in with this address."
          type="email"
          autoComplete="email"
          required
          data-autofocus
          {...form.getInputProps('email')}
        />
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={isPending}>
            Send a link
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
