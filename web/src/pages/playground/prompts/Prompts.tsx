import { Button, Group, Select, Stack, Switch, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { PromptBody, PromptView } from '../../../../../src/dashboard/views/playground.ts';
import { api } from '../../../api.ts';
import { below } from '../../../below.ts';
import { usePlace } from '../../../session.tsx';
import { Modal } from '../../../ui/Modal.tsx';
import { Card } from '../../../ui/Page.tsx';
import { Failed } from '../../../ui/states.tsx';
import { NameForm } from '../../../ui/NameForm.tsx';
import { useCopying } from '../../../ui/useCopying.ts';
import { promptsKey, usePrompts } from './queries.ts';
import { only_for_all } from './words.ts';
import { Versions } from './Versions.tsx';

type Props = {
  /** The prompt that is open. */
  prompt: PromptView | undefined;
  /** As it stands in the boxes now. */
  written: PromptBody;
  has_variables: boolean;
  setHasVariables: (on: boolean) => void;
  /** Opens a prompt, or none. */
  open: (id: string | undefined) => void;
  /** Puts an older version into the boxes. */
  restore: (body: PromptBody) => void;
  /** Runs it on the rows of a table. */
  runOnTable: () => void;
};

/** Prompts of the account: to open, to save with their versions, to hand on as a link. */
export function Prompts({ prompt, written, has_variables, setHasVariables, open, restore, runOnTable }: Props) {
  const { may, account } = usePlace();
  const list = usePrompts();
  const can_save = may('run') && account.role !== 'operator' && !account.is_limited;
  return (
    <Card title="Prompt">
      <Stack gap="sm">
        {account.is_limited ? (
          <Text size="sm" c="dimmed">
            {only_for_all}
          </Text>
        ) : (
          <Select
            label="Saved prompts"
            description="They belong to the account: its members see them."
            placeholder={list.data?.data.length === 0 ? 'None yet' : 'Open one'}
            searchable
            clearable
            value={prompt?.id ?? null}
            onChange={(id) => open(id ?? undefined)}
            data={(list.data?.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
            nothingFoundMessage="No prompt matches"
          />
        )}
        {list.error && <Failed error={list.error} retry={() => void list.refetch()} />}
        <Switch
          label="Fill in {{variables}}"
          checked={has_variables}
          onChange={({ currentTarget }) => setHasVariables(currentTarget.checked)}
        />
        {prompt && <OpenPrompt prompt={prompt} written={written} can_save={can_save} open={open} restore={restore} />}
        {!prompt && can_save && <SaveNew written={written} open={open} />}
        <Button size="xs" variant="default" onClick={runOnTable} disabled={!may('run')}>
          Run on a CSV file
        </Button>
      </Stack>
    </Card>
  );
}

function useChanges() {
  const { account } = usePlace();
  const queries = useQueryClient();
  return () => queries.invalidateQueries({ queryKey: promptsKey(account.id) });
}

function SaveNew({ written, open }: Pick<Props, 'written' | 'open'>) {
  const { base } = usePlace();
  const changed = useChanges();
  const [is_asking, setAsking] = useState(false);
  const save = useMutation({
    mutationFn: (name: string) => api.post<{ id: string }>(`${base}/prompts`, { name, prompt: written }),
    onSuccess: async ({ id }) => {
      setAsking(false);
      await changed();
      open(id);
    },
  });
  return (
    <>
      <Button size="xs" variant="light" onClick={() => setAsking(true)} disabled={written.text.trim() === ''}>
        Save as a prompt
      </Button>
      <Modal opened={is_asking} onClose={() => setAsking(false)} title="Save as a prompt">
        <NameForm
          label="Name"
          length_max={80}
          act="Save"
          is_pending={save.isPending}
          error={save.error}
          submit={save.mutate}
        />
      </Modal>
    </>
  );
}

type OpenProps = Pick<Props, 'written' | 'open' | 'restore'> & { prompt: PromptView; can_save: boolean };

type Dialog = 'versions' | 'rename' | 'delete';

function OpenPrompt({ prompt, written, can_save, open, restore }: OpenProps) {
  const { base } = usePlace();
  const changed = useChanges();
  const [dialog, setDialog] = useState<Dialog>();
  const close = () => setDialog(undefined);
  const change = useMutation({
    mutationFn: (body: { name?: string; prompt?: PromptBody }) => api.post(`${base}/prompts/${prompt.id}`, body),
    onSuccess: async () => {
      close();
      await changed();
    },
  });
  const is_changed = JSON.stringify(written) !== JSON.stringify(prompt.body);
  return (
    <>
      <Text size="sm" role="status">
        Version {prompt.version}
        {is_changed && ', changed since'}
      </Text>
      <Group gap="xs">
        {can_save && (
          <Button
            size="xs"
            disabled={!is_changed || written.text.trim() === ''}
            loading={change.isPending}
            onClick={() => change.mutate({ prompt: written })}
          >
            Save version {prompt.latest + 1}
          </Button>
        )}
        <Acts id={prompt.id} can_save={can_save} setDialog={setDialog} />
      </Group>
      {dialog === undefined && change.error && <Failed error={change.error} />}
      <Modal opened={dialog === 'versions'} onClose={close} title={`Versions of ${prompt.name}`} size="xl">
        <Versions
          prompt={prompt}
          written={written}
          restore={(body) => {
            close();
            restore(body);
          }}
        />
      </Modal>
      <Modal opened={dialog === 'rename'} onClose={close} title="Rename the prompt">
        <NameForm
          label="Name"
          length_max={80}
          name={prompt.name}
          act="Rename"
          is_pending={change.isPending}
          error={change.error}
          submit={(name) => change.mutate({ name })}
        />
      </Modal>
      <Modal opened={dialog === 'delete'} onClose={close} title="Delete the prompt?">
        <DeleteForm prompt={prompt} cancel={close} gone={() => open(undefined)} />
      </Modal>
    </>
  );
}

type ActsProps = { id: string; can_save: boolean; setDialog: (dialog: Dialog) => void };

function Acts({ id, can_save, setDialog }: ActsProps) {
  const { copied, copy } = useCopying(`${window.location.origin}${below('/playground')}?prompt=${id}`);
  return (
    <>
      <Button size="xs" variant="default" onClick={() => setDialog('versions')}>
        Versions
      </Button>
      <Button size="xs" variant="default" onClick={copy}>
        {copied ? 'Link copied' : 'Copy its link'}
      </Button>
      {can_save && (
        <>
          <Button size="xs" variant="default" onClick={() => setDialog('rename')}>
            Rename
          </Button>
          <Button size="xs" variant="subtle" color="red" onClick={() => setDialog('delete')}>
            Delete
          </Button>
        </>
      )}
    </>
  );
}

type DeleteProps = { prompt: PromptView; cancel: () => void; gone: () => void };

function DeleteForm({ prompt: { id, name }, cancel, gone }: DeleteProps) {
  const { base } = usePlace();
  const changed = useChanges();
  const remove = useMutation({
    mutationFn: () => api.post(`${base}/prompts/${id}/remove`),
    onSuccess: async () => {
      cancel();
      gone();
      await changed();
    },
  });
  return (
    <Stack>
      <Text size="sm">“{name}” is deleted with all of its versions, for everybody in the account.</Text>
      {remove.error && <Failed error={remove.error} />}
      <Group>
        <Button color="red" loading={remove.isPending} onClick={() => remove.mutate()} data-autofocus>
          Delete
        </Button>
        <Button variant="default" onClick={cancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
