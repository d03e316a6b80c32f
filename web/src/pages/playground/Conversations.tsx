import {
  ActionIcon,
  Alert,
  Button,
  Group,
  Menu,
  ScrollArea,
  Stack,
  Text,
  TextInput,
  UnstyledButton,
} from '@mantine/core';
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
import { conversations_key, useOwner, type Conversation } from './useConversation.ts';

type Props = { conversation: Conversation; openChat: (id: string, models: string[]) => void };

const shown_max = 50;

/** The conversations of this person with this account, in this browser: to open, to rename, to export, to delete. */
export function Conversations({ conversation, openChat }: Props) {
  const owner = useOwner();
  const query = useQuery({
    queryKey: conversations_key(owner),
    queryFn: () => browser_store.list(owner),
    retry: false,
    networkMode: 'always', // they are here
  });
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
          {(lines) => <Lines lines={lines} conversation={conversation} openChat={openChat} />}
        </Loaded>
      </Stack>
    </Card>
  );
}

function Lines({ lines, conversation, openChat }: Props & { lines: readonly ConversationLine[] }) {
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState(shown_max);
  const matches = foundIn(lines, search);
  if (lines.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Conversations are saved in this browser, for you alone. They stay when you sign out.
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
      <ScrollArea.Autosize mah={280} type="auto">
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
      </ScrollArea.Autosize>
      {matches.length > shown && (
        <Button size="xs" variant="subtle" onClick={() => setShown(shown + shown_max)}>
          Show more
        </Button>
      )}
    </>
  );
}

type LineProps = { line: ConversationLine; is_open: boolean; open: () => void; discard: () => void };

function Line({ line: { id, title, updated_at }, is_open, open, discard }: LineProps) {
  const owner = useOwner();
  const queries = useQueryClient();
  const [dialog, setDialog] = useState<'rename' | 'delete'>();
  const [error, setError] = useState<Error>();
  const close = () => setDialog(undefined);
  const done = (kind: 'saved' | 'removed') => {
    announce({ owner, kind, ids: [id] });
    close();
    void queries.invalidateQueries({ queryKey: conversations_key(owner) });
  };
  const fail = (problem: unknown) => setError(problem instanceof Error ? problem : new Error(String(problem)));
  const rename = (name: string) => browser_store.rename(owner, id, name).then(() => done('saved'), fail);
  const remove = async () => {
    if (is_open) discard();
    await browser_store.remove(owner, [id]);
    done('removed');
  };
  const download = async (form: 'json' | 'md') => {
    const saved = await browser_store.load(owner, id);
    if (!saved) return;
    const name = `conversation-${new Date(saved.created_at).toISOString().slice(0, 10)}`;
    if (form === 'md') saveFile(`${name}.md`, 'text/markdown', asMarkdown(saved));
    else saveFile(`${name}.json`, 'application/json', JSON.stringify(saved, undefined, 2));
  };
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
        <NameForm label="Title" length_max={100} act="Rename" name={title} submit={rename} />
      </Modal>
      <Modal opened={dialog === 'delete'} onClose={close} title="Delete the conversation?">
        <DeleteForm title={title} remove={() => void remove().catch(fail)} cancel={close} />
      </Modal>
    </>
  );
}

function DeleteForm({ title, remove, cancel }: { title: string; remove: () => void; cancel: () => void }) {
  return (
    <Stack>
      <Text size="sm">“{title}” is deleted from this browser. The calls stay in Activity, without their content.</Text>
      <Group>
        <Button color="red" onClick={remove} data-autofocus>
          Delete
        </Button>
        <Button variant="default" onClick={cancel}>
          Cancel
        </Button>
      </Group>
    </Stack>
  );
}
