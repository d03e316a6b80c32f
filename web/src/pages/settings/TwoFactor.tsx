import { Button, Center, Code, Group, PasswordInput, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { api } from '../../api.ts';
import { useSession } from '../../session.tsx';
import { CodeBox, Copy } from '../../ui/Copy.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { isSecretComing, shown_once } from '../../ui/shown-once.ts';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Qr } from './Qr.tsx';

type Doing = 'on' | 'off' | 'codes' | undefined;

/** A second factor: a code from an app on another device, besides the password. */
export function TwoFactor({ on }: { on: boolean }) {
  const [doing, setDoing] = useState<Doing>();
  const close = () => setDoing(undefined);
  return (
    <Card title="Second factor" side={<Status of={on ? 'active' : 'off'} label={on ? 'On' : 'Off'} />}>
      <Stack>
        <Text size="sm" maw={640}>
          {on
            ? 'Signing in asks for a code from your authenticator app. If you lose the app, one of your backup codes lets you in.'
            : 'With a code from an authenticator app, a stolen password is not enough to sign in.'}
        </Text>
        <Group gap="xs">
          {on ? (
            <>
              <Button variant="default" onClick={() => setDoing('codes')}>
                New backup codes
              </Button>
              <Button variant="default" onClick={() => setDoing('off')}>
                Turn off
              </Button>
            </>
          ) : (
            <Button onClick={() => setDoing('on')}>Turn on</Button>
          )}
        </Group>
      </Stack>
      {doing === 'on' && <TurnOn close={close} />}
      {doing === 'off' && <TurnOff close={close} />}
      {doing === 'codes' && <NewCodes close={close} />}
    </Card>
  );
}

type Enabled = { totpURI: string; backupCodes: string[] };

/** Password, then the QR code and a first code, then the backup codes. */
function TurnOn({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [code, setCode] = useState('');
  const enable = useMutation({
    mutationFn: (password: string) => api.post<Enabled>('/auth/two-factor/enable', { password }),
    ...shown_once,
  });
  const verify = useMutation({
    mutationFn: () => api.post('/auth/two-factor/verify-totp', { code: code.trim() }),
    ...shown_once, // with its answer the backup codes count, which are then shown
  });
  const end = () => {
    if (isSecretComing(queries)) return;
    close();
    if (!verify.isSuccess) return;
    void queries.invalidateQueries({ queryKey: ['me'] });
    void queries.invalidateQueries({ queryKey: ['sessions'] });
  };
  const { data } = enable;
  if (!data) {
    return <AskPassword title="Turn the second factor on" word="Continue" ask={enable} close={close} />;
  }
  if (verify.isSuccess) return <Codes codes={data.backupCodes} close={end} />;
  return (
    <Modal opened onClose={end} title="Turn the second factor on">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          verify.mutate();
        }}
      >
        <Stack>
          <Text size="sm">
            Scan this with your authenticator app, or type the secret into it. You are then signed out everywhere else.
          </Text>
          <Center>
            <Qr text={data.totpURI} label="QR code with the secret for your authenticator app" />
          </Center>
          <CodeBox text={new URL(data.totpURI).searchParams.get('secret') ?? ''} label="secret" />
          <TextInput
            label="Code from the app"
            inputMode="numeric"
            autoComplete="one-time-code"
            pattern="[0-9 ]*"
            maxLength={7}
            required
            data-autofocus
            value={code}
            onChange={({ currentTarget }) => setCode(currentTarget.value)}
          />
          {verify.error && <Failed error={verify.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={end}>
              Cancel
            </Button>
            <Button type="submit" loading={verify.isPending}>
              Turn on
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function TurnOff({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const ask = useMutation({
    mutationFn: (password: string) => api.post('/auth/two-factor/disable', { password }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['me'] });
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      close();
    },
    gcTime: 0,
  });
  return (
    <AskPassword title="Turn the second factor off" word="Turn off" ask={ask} close={close}>
      Signing in will ask for no code. Your backup codes stop working, and you are signed out everywhere else.
    </AskPassword>
  );
}

function NewCodes({ close }: { close: () => void }) {
  const ask = useMutation({
    mutationFn: (password: string) =>
      api.post<{ backupCodes: string[] }>('/auth/two-factor/generate-backup-codes', { password }),
    ...shown_once,
  });
  if (ask.data) return <Codes codes={ask.data.backupCodes} close={close} />;
  return (
    <AskPassword title="New backup codes" word="Create codes" ask={ask} close={close}>
      Your old codes stop working.
    </AskPassword>
  );
}

type PasswordQuestion = { mutate: (password: string) => void; error: Error | null; isPending: boolean };

function AskPassword(props: {
  title: string;
  word: string;
  ask: PasswordQuestion;
  close: () => void;
  children?: ReactNode;
}) {
  const { title, word, ask, children } = props;
  const queries = useQueryClient();
  const close = () => !isSecretComing(queries) && props.close();
  const [password, setPassword] = useState('');
  const { has_password } = useSession().me.user;
  return (
    <Modal opened onClose={close} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask.mutate(password);
        }}
      >
        <Stack>
          {children && <Text size="sm">{children}</Text>}
          {has_password && (
            <PasswordInput
              label="Your password"
              autoComplete="current-password"
              required
              data-autofocus
              value={password}
              onChange={({ currentTarget }) => setPassword(currentTarget.value)}
            />
          )}
          {ask.error && <Failed error={ask.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={ask.isPending}>
              {word}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** Told once, each good for one time. */
function Codes({ codes, close }: { codes: string[]; close: () => void }) {
  return (
    <Modal opened onClose={close} title="Your backup codes" shows_once>
      <Stack>
        <Text size="sm">
          Each lets you in once if you do not have your app. They are shown only now: keep them where you keep
          passwords.
        </Text>
        <SimpleGrid cols={2} spacing="xs">
          {codes.map((code) => (
            <Code key={code} fz="sm" ta="center">
              {code}
            </Code>
          ))}
        </SimpleGrid>
        <Group justify="space-between">
          <Group gap={4}>
            <Copy text={codes.join('\n')} label="Copy all" />
            <Text size="sm">Copy all</Text>
          </Group>
          <Button onClick={close}>I have saved them</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
