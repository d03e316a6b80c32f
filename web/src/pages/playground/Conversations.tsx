import { ActionIcon, Alert, Box, Button, Group, Menu, Stack, Text, TextInput, UnstyledButton } from '@mantine/core';
import { EllipsisVerticalIcon, PlusIcon } from '@heroicons/react/24/outline';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { NameForm } from '../../ui/NameForm.tsx';
import { announce, browser_store } from './conversation-store.ts';
import { saveFile } from './save-file.ts';
import { asMarkdown, foundIn, type ConversationLine } from './saved-conversation.ts';
import { joinedLines } from './server/joined-lines.ts';
import { KeepOnServer } from './server/KeepOnServer.tsx';
import { conversations_key, useOwner, useServer, useSynchroniser } from './server/useServer.ts';
import type { Conversation } from './useConversation.ts';

type Props = { conversation: Conversation; openChat: (id: string, models: string[]) => void };

const shown_max = 50;

/** The conversations of this person with this account: to open, to rename, to export, to delete. */
export function Conversations({ conversation, openChat }: Props) {
  const owner = useOwner();
  const query = useQuery({
    queryKey: conversations_key(owner),
    queryFn: () => browser_store.list(owner),
    retry: false,
  });
  const { view, error, sending, synchroniser } = useServer();
  const { problem } = conversation;
  return (
    <Card
      title="Conversations"
      side={
        <Button
          size="xs"
          variant="light"
          leftSection={<PlusIcon width={16} aria-hidden />}
          onClick={conversation.clear}
          disabled={conversation.id === undefined}
        >
          New
        </Button>
      }
    >
      <Stack gap="xs">
        {problem && (
          <Alert color="yellow" variant="light" role="alert" title="This conversation is not saved">
            {problem.message}
          </Alert>
        )}
        <Loaded query={query} height={104}>
          {(local) => (
            <Lines
              lines={joinedLines(local, view?.lines ?? [])}
              is_on={view?.is_on ?? false}
              conversation={conversation}
              openChat={openChat}
            />
          )}
        </Loaded>
        {error && (
          <Text size="xs" c="dimmed" role="status">
            What is on the server could not be read. {error.message}
          </Text>
        )}
        {view && <KeepOnServer view={view} sending={sending} synchroniser={synchroniser} />}
      </Stack>
    </Card>
  );
}

type LinesProps = Props & { lines: readonly ConversationLine[]; is_on: boolean };

function Lines({ lines, is_on, conversation, openChat }: LinesProps) {
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState(shown_max);
  const matches = foundIn(lines, search);
  if (lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {is_on
          ? 'Conversations are saved in this browser and on the server, for you alone.'
          : 'Conversations are saved in this browser, for you alone. They stay when you sign out.'}
      </Text>
    );
  }
  return (
    <>
      {lines.length > 3 && (
        <TextInput
          aria-label="Search conversations"
          placeholder="Search"
          value={search}
          onChange={({ currentTarget }) => setSearch(currentTarget.value)}
        />
      )}
      <Text size="xs" c="dimmed" role="status" hidden={search === ''}>
        {matches.length === 1 ? '1 conversation' : `${matches.length} conversations`}
      </Text>
      <Box mah={280} style={{ overflowY: 'auto' }}>
        <Stack gap={2} component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
          {matches.slice(0, shown).map((line) => (
            <li key={line.id}>
              <Line
                line={line}
                is_open={line.id === conversation.id}
                open={() => openChat(line.id, line.models)}
                discard={conversation.discard}
              />
            </li>
          ))}
        </Stack>
      </Box>
      {matches.length > shown && (
        <Button size="xs" variant="subtle" onClick={() => setShown(shown + shown_max)}>
          Show more
        </Button>
      )}
    </>
  );
}

type LineProps = { line: ConversationLine; is_open: boolean; open: () => void; discard: () => void };

/** Acts of a line: on what this browser has, or else the server. */
function useLineActs({ line: { id }, is_open, discard }: LineProps, close: () => void) {
  const owner = useOwner();
  const queries = useQueryClient();
  const synchroniser = useSynchroniser();
  const done = (kind: 'saved' | 'removed') => {
    announce({ owner, kind, ids: [id] });
    close();
    void queries.invalidateQueries({ queryKey: conversations_key(owner) });
  };
  return {
    is_on_server: synchroniser.is_on,
    rename: async (name: string) => {
      await synchroniser.bring(id).catch(() => undefined); // without a network, what is here gets the name
      await browser_store.rename(owner, id, name);
      synchroniser.sendSoon();
      done('saved');
    },
    remove: async () => {
      if (is_open) discard();
      await synchroniser.remove(id);
      done('removed');
    },
    download: async (form: 'json' | 'md') => {
      const saved = (await browser_store.load(owner, id)) ?? (await synchroniser.bring(id));
      if (!saved) return;
      const name = `conversation-${new Date(saved.created_at).toISOString().slice(0, 10)}`;
      if (form === 'md') saveFile(`${name}.md`, 'text/markdown', asMarkdown(saved));
      else saveFile(`${name}.json`, 'application/json', JSON.stringify(saved, undefined, 2));
    },
  };
}

function Line(props: LineProps) {
  const { line, is_open, open } = props;
  const { title, updated_at } = line;
  const [dialog, setDialog] = useState<'rename' | 'delete'>();
  const [error, setError] = useState<Error>();
  const close = () => setDialog(undefined);
  const { is_on_server, rename, remove, download } = useLineActs(props, close);
  const fail = (problem: unknown) => setError(problem instanceof Error ? problem : new Error(String(problem)));
  return (
    <>
      <Group
        wrap="nowrap"
        gap={4}
        style={{ borderRadius: 8, ...(is_open && { background: 'var(--mantine-primary-color-light)' }) }}
      >
        <UnstyledButton p={6} flex={1} miw={0} onClick={open} aria-current={is_open}>
          <Text size="sm" truncate>
            {title}
          </Text>
          <Text size="xs" c="dimmed">
            <Time at={new Date(updated_at).toISOString()} ago />
          </Text>
        </UnstyledButton>
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`More for ${title}`}>
              <EllipsisVerticalIcon width={18} aria-hidden />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => setDialog('rename')}>Rename</Menu.Item>
            <Menu.Item onClick={() => void download('md').catch(fail)}>Export as Markdown</Menu.Item>
            <Menu.Item onClick={() => void download('json').catch(fail)}>Export as JSON</Menu.Item>
            <Menu.Item color="red" onClick={() => setDialog('delete')}>
              Delete
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
      {error && <Failed error={error} />}
      <Modal opened={dialog === 'rename'} onClose={close} title="Rename the conversation">
        <NameForm
          label="Title"
          length_max={100}
          act="Rename"
          name={title}
          submit={(name) => void rename(name).catch(fail)}
        />
      </Modal>
      <Modal opened={dialog === 'delete'} onClose={close} title="Delete the conversation?">
        <DeleteForm title={title} is_on={is_on_server} remove={() => void remove().catch(fail)} cancel={close} />
      </Modal>
    </>
  );
}

type DeleteProps = { title: string; is_on: boolean; remove: () => void; cancel: () => void };

function DeleteForm({ title, is_on, remove, cancel }: DeleteProps) {
  return (
    <Stack>
      <Text size="sm">
        {is_on
          ? `“${title}” is deleted on the server and in all your browsers.`
          : `“${title}” is deleted from this browser.`}{' '}
        The calls stay in Activity, without their content.
      </Text>
      <Group>
        <Button color="red.9" onClick={remove} data-autofocus>
          Delete
        </Button>
        <Button variant="default" onClick={cancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
