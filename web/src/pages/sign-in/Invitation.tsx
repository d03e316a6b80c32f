import { Anchor, Button, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { InvitationView } from '../../../../src/dashboard/views/common.ts';
import { api } from '../../api.ts';
import { below, own_path } from '../../below.ts';
import { useMe } from '../../session.tsx';
import { fieldErrors } from '../../ui/field-error.ts';
import { IssuerButtons, useWaysIn } from '../../ui/Issuers.tsx';
import { password_rule } from '../../ui/password.ts';
import { Failed, Loaded } from '../../ui/states.tsx';
import { roleName } from '../../ui/roles.ts';
import { useArrive } from './arrive.ts';
import { EntryPage } from './EntryPage.tsx';

/** `proof` is in the mailed link alone: whoever has it reads the mail of the invited address. */
type Link = { id: string; proof: string | undefined };

/** Invitation to join an account: as themselves for people who have signed in, else as somebody new. */
export function Invitation() {
  const search = new URLSearchParams(location.search);
  const link: Link = { id: search.get('id') ?? '', proof: search.get('proof') ?? undefined };
  const { id } = link;
  const me = useMe();
  const invitation = useQuery({
    queryKey: ['invitation', id],
    queryFn: ({ signal }) => api.get<InvitationView>(`/dash/invitations/${encodeURIComponent(id)}`, { signal }),
    retry: false,
  });
  return (
    <EntryPage title="Invitation">
      <Loaded query={invitation} height={160}>
        {(view) => (
          <>
            <Text>
              <b>{view.account_name}</b> invites {view.email} as {roleName(view.role)}.
            </Text>
            {view.projects && (
              <Text size="sm" c="dimmed">
                {view.projects.length === 0
                  ? 'You will see no project until an owner gives you one.'
                  : `You will see only: ${view.projects.join(', ')}.`}
              </Text>
            )}
            {me.data && me.data.user.email === view.email.toLowerCase() ? <Accept link={link} /> : <Join link={link} />}
          </>
        )}
      </Loaded>
    </EntryPage>
  );
}

function Accept({ link: { id, proof } }: { link: Link }) {
  const arrive = useArrive();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post(`/dash/invitations/${encodeURIComponent(id)}/accept`, { proof }),
    onSuccess: arrive,
  });
  return (
    <>
      {error && <Failed error={error} />}
      <Button onClick={() => mutate()} loading={isPending}>
        Join
      </Button>
    </>
  );
}

function Join({ link }: { link: Link }) {
  const ways = useWaysIn();
  const here = location.pathname.slice(own_path.length) + location.search;
  return (
    <Loaded query={ways} height={160}>
      {({ password, issuers }) => (
        <>
          {issuers.length > 0 && (
            <>
              <IssuerButtons issuers={issuers} purpose={{ next: here }} word="Continue with" />
              {password && <Divider label="or" />}
            </>
          )}
          {password && <JoinByPassword link={link} here={here} />}
        </>
      )}
    </Loaded>
  );
}

function JoinByPassword({ link, here }: { link: Link; here: string }) {
  const arrive = useArrive();
  const form = useForm({ mode: 'uncontrolled', initialValues: { name: '', password: '' } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: { name: string; password: string }) => api.post('/auth/join', { ...values, ...link }),
    onSuccess: arrive,
  });
  const problem = fieldErrors(error, { name: 'Your name', password: 'The password' });
  return (
    <form onSubmit={form.onSubmit((values) => mutate(values))}>
      <Stack>
        <TextInput
          label="Your name"
          autoComplete="name"
          required
          maxLength={100}
          {...form.getInputProps('name')}
          error={problem.of('name')}
        />
        <PasswordInput
          label="Choose a password"
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
          Join
        </Button>
        <Anchor href={below(`/sign-in?next=${encodeURIComponent(here)}`)} size="sm">
          Already have a password here? Sign in
        </Anchor>
      </Stack>
    </form>
  );
}
