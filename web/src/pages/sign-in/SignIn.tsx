import { Alert, Anchor, Button, Center, Code, Loader, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useForm } from '@mantine/form';
import { useMutation } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { below } from '../../below.ts';
import { api, isRecord } from '../../api.ts';
import { useMe } from '../../session.tsx';
import { Failed } from '../../ui/states.tsx';
import { useArrive, wantedPage } from './arrive.ts';
import { Gate } from './Gate.tsx';
import { ForgottenPassword } from './ForgottenPassword.tsx';

type Step = 'password' | 'code' | 'forgotten';

/** By a one-time link (`?token=`), or by e-mail address and password, and a second factor if there is one. */
export function SignIn() {
  const me = useMe();
  const token = new URLSearchParams(location.search).get('token');
  const [step, setStep] = useState<Step>('password');
  if (token !== null) return <ByLink token={token} />;
  if (me.data) return <Forward />;
  if (step === 'code') return <SecondFactor />;
  if (step === 'forgotten') return <ForgottenPassword back={() => setStep('password')} />;
  return <ByPassword onCode={() => setStep('code')} onForgotten={() => setStep('forgotten')} />;
}

/** For who is signed in already: in another tab, or since yesterday. */
function Forward() {
  const { history } = useRouter();
  useEffect(() => history.replace(below(wantedPage())), [history]);
  return (
    <Center h="100vh" role="status" aria-label="Loading">
      <Loader />
    </Center>
  );
}

function ByLink({ token }: { token: string }) {
  const arrive = useArrive();
  const me = useMe();
  const sent = useRef(false);
  const { mutate, error } = useMutation({
    mutationFn: () => api.post('/auth/sign-in/link', { token }),
    onSuccess: arrive,
  });
  useEffect(() => {
    if (sent.current) return; // a link works once, and React runs this twice while developing
    sent.current = true;
    mutate();
  }, [mutate]);
  if (!error) {
    return (
      <Gate title="Signing you in">
        <Loader role="status" aria-label="Signing you in" />
      </Gate>
    );
  }
  if (me.data) return <SignedInAlready name={me.data.user.name} />;
  return (
    <Gate title="This link does not work any more">
      <Failed error={error} />
      <Text size="sm">
        Whoever runs the service gets a new one with <Code>npm run -s medley -- login-link</Code>.
      </Text>
      <Anchor href={below('/sign-in')}>Sign in with a password</Anchor>
    </Gate>
  );
}

/** A link that was used before, most likely by the same person. */
function SignedInAlready({ name }: { name: string }) {
  return (
    <Gate title="You are signed in">
      <Text>This link was used or is too old, and you do not need it: you are signed in as {name}.</Text>
      <Button component="a" href={below('/')}>
        Go to the dashboard
      </Button>
    </Gate>
  );
}

function ByPassword({ onCode, onForgotten }: { onCode: () => void; onForgotten: () => void }) {
  const arrive = useArrive();
  const form = useForm({ mode: 'uncontrolled', initialValues: { email: '', password: '' } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (values: { email: string; password: string }) => api.post<unknown>('/auth/sign-in/email', values),
    onSuccess: async (answer) => (isRecord(answer) && answer['twoFactorRedirect'] === true ? onCode() : arrive()),
  });
  return (
    <Gate title="Sign in">
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
          <PasswordInput
            label="Password"
            autoComplete="current-password"
            required
            {...form.getInputProps('password')}
          />
          {error && (
            <Alert role="alert" color="red" variant="light">
              {error.message}
            </Alert>
          )}
          <Button type="submit" loading={isPending}>
            Sign in
          </Button>
          <Anchor component="button" type="button" size="sm" onClick={onForgotten}>
            Forgotten your password?
          </Anchor>
        </Stack>
      </form>
    </Gate>
  );
}

function SecondFactor() {
  const arrive = useArrive();
  const [backup, setBackup] = useState(false);
  const form = useForm({ mode: 'uncontrolled', initialValues: { code: '' } });
  const { mutate, error, isPending } = useMutation({
    mutationFn: ({ code }: { code: string }) =>
      api.post(`/auth/two-factor/${backup ? 'verify-backup-code' : 'verify-totp'}`, { code: code.trim() }),
    onSuccess: arrive,
  });
  return (
    <Gate
      title="Second factor"
      about={
        backup ? 'One of the codes that you kept when you switched it on.' : 'The six digits that your app shows now.'
      }
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
            Go on
          </Button>
          <Anchor component="button" type="button" size="sm" onClick={() => setBackup(!backup)}>
            {backup ? 'Use the app instead' : 'Use a backup code instead'}
          </Anchor>
        </Stack>
      </form>
    </Gate>
  );
}
