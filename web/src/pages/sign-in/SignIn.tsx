import {
  Alert,
  Anchor,
  Button,
  Center,
  Code,
  Divider,
  Loader,
  PasswordInput,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { below } from '../../below.ts';
import { api, isRecord } from '../../api.ts';
import { useMe } from '../../session.tsx';
import { IssuerButtons, IssuerProblem, useIssuer, useWaysIn } from '../../ui/Issuers.tsx';
import { Failed } from '../../ui/states.tsx';
import { browser_has_passkeys } from '../../ui/passkeys.ts';
import { useArrive, requestedPage } from './arrive.ts';
import { ByPasskey } from './ByPasskey.tsx';
import { EntryPage } from './EntryPage.tsx';
import { ForgottenPassword, MailedLink } from './AskByMail.tsx';

type Step = 'password' | 'code' | 'forgotten' | 'link';

/** Sign-in by a one-time link (`?token=`), by an issuer, or by e-mail address and password; then by a second factor. */
export function SignIn() {
  const me = useMe();
  const search = new URLSearchParams(location.search);
  const token = search.get('token');
  const [step, setStep] = useState<Step>(() => (search.get('step') === 'code' ? 'code' : 'password'));
  // Once: this page is shown until the next one is loaded, whose address has no `next`.
  const [page] = useState(requestedPage);
  if (step === 'code') return <SecondFactor />;
  if (token !== null)
    return <ByLink token={token} by_mail={search.get('by') === 'mail'} onCode={() => setStep('code')} />;
  const issuer = search.get('with');
  if (issuer !== null) return <ByIssuer issuer={issuer} next={page} fresh={search.get('fresh') === '1'} />;
  if (me.data) return <Forward page={page} />;
  if (step === 'forgotten') return <ForgottenPassword back={() => setStep('password')} />;
  if (step === 'link') return <MailedLink back={() => setStep('password')} />;
  return <Ways onStep={setStep} />;
}

/** For who is signed in already: in another tab, or since yesterday. */
function Forward({ page }: { page: string }) {
  const { history } = useRouter();
  useEffect(() => history.replace(below(page)), [history, page]);
  return (
    <Center h="100vh" role="status" aria-label="Loading">
      <Loader />
    </Center>
  );
}

type LinkProps = { token: string; by_mail: boolean; onCode: () => void };

/** A mailed link asks for a button first: programs that look at mail follow links, and press nothing. */
function ByLink({ token, by_mail, onCode }: LinkProps) {
  const arrive = useArrive();
  const me = useMe();
  const sent = useRef(false);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post<unknown>('/auth/sign-in/link', { token }),
    onSuccess: async (answer) => (asksForCode(answer) ? onCode() : arrive()),
  });
  useEffect(() => {
    if (sent.current || by_mail) return; // a link works once, and React runs this twice while developing
    sent.current = true;
    mutate();
  }, [mutate, by_mail]);
  if (error)
    return me.data ? <SignedInAlready name={me.data.user.name} /> : <LinkGone error={error} by_mail={by_mail} />;
  if (!by_mail) {
    return (
      <EntryPage title="Signing you in">
        <Loader role="status" aria-label="Signing you in" />
      </EntryPage>
    );
  }
  return (
    <EntryPage title="Sign in" about="You asked for this link. It works once.">
      <Button onClick={() => mutate()} loading={isPending} autoFocus>
        Sign in
      </Button>
    </EntryPage>
  );
}

function LinkGone({ error, by_mail }: { error: Error; by_mail: boolean }) {
  return (
    <EntryPage title="This link no longer works">
      <Failed error={error} />
      {!by_mail && (
        <Text size="sm">
          The operator creates a new one with Medley's command <Code>login-link</Code>.
        </Text>
      )}
      <Anchor href={below('/sign-in')}>{by_mail ? 'Back to signing in' : 'Sign in with a password'}</Anchor>
    </EntryPage>
  );
}

function asksForCode(answer: unknown): boolean {
  return isRecord(answer) && answer['twoFactorRedirect'] === true;
}

/** A link that was used before, most likely by the same person. */
function SignedInAlready({ name }: { name: string }) {
  return (
    <EntryPage title="You are signed in">
      <Text>This link was used or has expired, and you do not need it: you are signed in as {name}.</Text>
      <Button component="a" href={below('/')}>
        Go to the dashboard
      </Button>
    </EntryPage>
  );
}

/** An address that begins the sign-in of an issuer by itself. */
function ByIssuer({ issuer, next, fresh }: { issuer: string; next: string; fresh: boolean }) {
  const { mutate, error } = useIssuer({ next, fresh });
  const sent = useRef(false);
  useEffect(() => {
    if (sent.current) return; // React runs this twice while developing
    sent.current = true;
    mutate(issuer);
  }, [mutate, issuer]);
  return (
    <EntryPage title="Signing you in">
      {error ? (
        <>
          <Failed error={error} />
          <Anchor href={below('/sign-in')}>Back to signing in</Anchor>
        </>
      ) : (
        <Loader role="status" aria-label="Signing you in" />
      )}
    </EntryPage>
  );
}

type StepProps = { onStep: (step: Step) => void };

/** Everything that one can sign in with here. */
function Ways({ onStep }: StepProps) {
  const ways = useWaysIn();
  const [next] = useState(requestedPage);
  // Whoever has a password need not wait for a list.
  const { password = true, passkeys = false, mails = false, issuers = [] } = ways.data ?? {};
  const by_passkey = passkeys && browser_has_passkeys;
  return (
    <EntryPage title="Sign in">
      <IssuerProblem issuers={issuers} />
      {issuers.length > 0 && <IssuerButtons issuers={issuers} purpose={{ next }} word="Sign in with" />}
      {by_passkey && <ByPasskey />}
      {password && (by_passkey || issuers.length > 0) && <Divider label="or with a password" />}
      {password ? (
        <ByPassword onStep={onStep} />
      ) : (
        mails && (
          <Anchor component="button" type="button" size="sm" onClick={() => onStep('link')}>
            Mail me a link instead
          </Anchor>
        )
      )}
    </EntryPage>
  );
}

function ByPassword({ onStep }: StepProps) {
  const arrive = useArrive();
  const form = useForm({ mode: 'uncontrolled', initialValues: { email: '', password: '' } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: { email: string; password: string }) => api.post<unknown>('/auth/sign-in/email', values),
    onSuccess: async (answer) => (asksForCode(answer) ? onStep('code') : arrive()),
  });
  return (
    <form onSubmit={form.onSubmit((values) => mutate(values))}>
      <Stack>
        <TextInput
          label="E-mail address"
          type="email"
          autoComplete="username webauthn"
          required
          autoFocus
          {...form.getInputProps('email')}
        />
        <PasswordInput label="Password" autoComplete="current-password" required {...form.getInputProps('password')} />
        {error && (
          <Alert role="alert" color="red" variant="light">
            {error.message}
          </Alert>
        )}
        <Button type="submit" loading={isPending}>
          Sign in
        </Button>
        <Anchor component="button" type="button" size="sm" onClick={() => onStep('forgotten')}>
          Forgotten your password?
        </Anchor>
        <Anchor component="button" type="button" size="sm" onClick={() => onStep('link')}>
          Mail me a link instead
        </Anchor>
      </Stack>
    </form>
  );
}

function SecondFactor() {
  const arrive = useArrive();
  const ways = useWaysIn();
  const [backup, setBackup] = useState(false);
  const form = useForm({ mode: 'uncontrolled', initialValues: { code: '' } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: ({ code }: { code: string }) =>
      api.post(`/auth/two-factor/${backup ? 'verify-backup-code' : 'verify-totp'}`, { code: code.trim() }),
    onSuccess: arrive,
  });
  return (
    <EntryPage
      title="Second factor"
      about={backup ? 'One of the backup codes that you saved.' : 'The six digits that your app shows.'}
    >
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack>
          <TextInput
            label={backup ? 'Backup code' : 'Code'}
            autoComplete="one-time-code"
            inputMode={backup ? 'text' : 'numeric'}
            required
            autoFocus
            {...form.getInputProps('code')}
          />
          {error && (
            <Alert role="alert" color="red" variant="light">
              {error.message}
            </Alert>
          )}
          <Button type="submit" loading={isPending}>
            Continue
          </Button>
          <Anchor component="button" type="button" size="sm" onClick={() => setBackup(!backup)}>
            {backup ? 'Use the app instead' : 'Use a backup code instead'}
          </Anchor>
          {ways.data?.passkeys === true && browser_has_passkeys && <ByPasskey />}
        </Stack>
      </form>
    </EntryPage>
  );
}
