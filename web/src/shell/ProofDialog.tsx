import { Button, Code, Divider, Group, PasswordInput, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import type { LinkedSignInView } from '../../../src/dashboard/views/settings.ts';
import { api } from '../api.ts';
import { below } from '../below.ts';
import type { ProofKind } from '../proof.ts';
import { addressOf, type Me } from '../session.tsx';
import { useWaysIn } from '../ui/Issuers.tsx';
import { browser_has_passkeys, proveByPasskey } from '../ui/passkeys.ts';
import { Failed } from '../ui/states.tsx';
import { Modal } from '../ui/Modal.tsx';

/** Stands above the dialog whose act asks. */
const above_others = 400;

type Props = { end: (is_given: boolean) => void };

/** Asks who is there once more, before an act that a stolen session must not be good for. */
export function ProofDialog({ me, kind, end }: Props & { me: Me; kind: ProofKind }) {
  const by_passkey = kind === 'passkey' || (me.user.has_passkeys && browser_has_passkeys);
  return (
    <Modal
      opened
      onClose={() => end(false)}
      title="Is it still you?"
      zIndex={above_others}
      closeOnClickOutside={false}
      closeOnEscape={false}
      size="sm"
      centered
    >
      <EscapeIsOurs cancel={() => end(false)}>
        <Stack>
          {by_passkey && <ByPasskey is_only={kind === 'passkey'} end={end} />}
          {by_passkey && kind === 'any' && <Divider label="or in another way" />}
          {kind === 'any' &&
            (me.user.has_password ? (
              <ByPassword email={addressOf(me.user)} end={end} />
            ) : (
              <WithoutPassword me={me} end={end} />
            ))}
        </Stack>
      </EscapeIsOurs>
    </Modal>
  );
}

const not_for_others = 'data-mantine-stop-propagation';

/**
 * Escape cancels this dialog alone. The dialog below listens at the window before anything in here could stop the key;
 * it leaves out what carries the library's mark, so whatever has the focus carries it for now.
 */
function EscapeIsOurs({ cancel, children }: { cancel: () => void; children: ReactNode }) {
  useEffect(() => {
    const marked = new Set<Element>();
    const mark = (element: EventTarget | null) => {
      if (!(element instanceof Element)) return;
      element.setAttribute(not_for_others, 'true');
      marked.add(element);
    };
    const follow = ({ target }: FocusEvent) => mark(target);
    mark(document.body);
    mark(document.activeElement);
    document.addEventListener('focusin', follow);
    return () => {
      document.removeEventListener('focusin', follow);
      for (const element of marked) element.removeAttribute(not_for_others);
    };
  }, []);
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.isComposing) cancel();
    };
    document.addEventListener('keydown', hear);
    return () => document.removeEventListener('keydown', hear);
  }, [cancel]);
  return children;
}

/** A passkey also gives the session the second factor that it may have begun without. */
function ByPasskey({ is_only, end }: Props & { is_only: boolean }) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: proveByPasskey,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['me'] });
      end(true);
    },
  });
  return (
    <Stack>
      {is_only && (
        <Text size="sm">
          You signed in without a passkey, and this changes how one signs in as you. If you have lost your passkeys, ask
          the operator of the service for a sign-in link.
        </Text>
      )}
      {error && <Failed error={error} />}
      <Button variant={is_only ? 'filled' : 'light'} loading={isPending} onClick={() => mutate()} data-autofocus>
        Confirm with a passkey
      </Button>
      {is_only && (
        <Button variant="default" onClick={() => end(false)}>
          Cancel
        </Button>
      )}
    </Stack>
  );
}

function ByPassword({ email, end }: Props & { email: string | undefined }) {
  const [password, setPassword] = useState('');
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post('/auth/prove', { password }),
    onSuccess: () => end(true),
    gcTime: 0,
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack>
        <Text size="sm">You entered your password more than 15 minutes ago. Enter it again to continue.</Text>
        <input type="hidden" autoComplete="username" value={email ?? ''} readOnly />
        <PasswordInput
          label="Your password"
          autoComplete="current-password"
          required
          data-autofocus
          value={password}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => end(false)}>
            Cancel
          </Button>
          <Button type="submit" loading={isPending}>
            Continue
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Whoever has no password signs in anew, in this browser; the act goes on with the session that this begins. */
function WithoutPassword({ me, end }: Props & { me: Me }) {
  const queries = useQueryClient();
  const issuers = useConnected();
  const email = me.mails && me.user.email_proved ? addressOf(me.user) : undefined;
  const mail = useMutation({ mutationFn: () => api.post('/auth/sign-in/mail', { email }) });
  const goOn = async () => {
    await queries.invalidateQueries({ queryKey: ['me'] });
    end(true);
  };
  return (
    <Stack>
      <Text size="sm">
        You proved who you are more than 15 minutes ago. Sign in again in this browser, then continue here.
      </Text>
      {issuers.map(({ id, name }) => (
        <Button key={id} component="a" variant="light" target="_blank" href={below(`/sign-in?with=${id}&fresh=1`)}>
          Sign in with {name} again
        </Button>
      ))}
      {email === undefined ? (
        issuers.length === 0 && (
          <Text size="sm">
            The operator creates a link with Medley's command <Code>login-link</Code>. With a way in of your own, which
            you set on the Home page, you need no links.
          </Text>
        )
      ) : mail.isSuccess ? (
        <Text size="sm">A link is on its way to {email}.</Text>
      ) : (
        <Group>
          <Button variant="light" loading={mail.isPending} onClick={() => mail.mutate()}>
            Mail me a link
          </Button>
        </Group>
      )}
      {mail.error && <Failed error={mail.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={() => end(false)}>
          Cancel
        </Button>
        <Button onClick={() => void goOn()}>I have signed in again</Button>
      </Group>
    </Stack>
  );
}

/** The issuers that sign this person in. */
function useConnected(): { id: string; name: string }[] {
  const ways = useWaysIn();
  const { data } = useQuery({
    queryKey: ['sign-ins'],
    queryFn: ({ signal }) => api.get<{ data: LinkedSignInView[] }>('/dash/sign-ins', { signal }),
  });
  return (ways.data?.issuers ?? []).filter(({ id }) => data?.data.some(({ issuer_id }) => issuer_id === id));
}
