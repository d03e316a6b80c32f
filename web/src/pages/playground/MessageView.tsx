import { ActionIcon, Box, Button, Group, Text, Textarea } from '@mantine/core';
import { PencilIcon } from '@heroicons/react/24/outline';
import { useState } from 'react';
import { AttachmentView } from './AttachmentView.tsx';
import { Versions, type Pager } from './Versions.tsx';
import type { ModelAnswer, Turn } from './turn.ts';

type Props = {
  turn: Exclude<Turn, ModelAnswer>;
  pager: Pager;
  /** Asks again with another text; undefined while that cannot be done. */
  edit: ((text: string) => void) | undefined;
};

/** Something that the person said, which can be said otherwise: both versions stay. */
export function MessageView({ turn, pager, edit }: Props) {
  const [is_editing, setEditing] = useState(false);
  const files = turn.role === 'user' ? turn.files : [];
  return (
    <Box p="sm" style={{ background: 'var(--mantine-primary-color-light)', borderRadius: 8 }}>
      <Group justify="space-between" wrap="nowrap" mih={28}>
        <Text size="xs" fw={600} c="dimmed">
          {turn.role === 'user' ? 'You' : 'The tool'}
        </Text>
        <Group gap={4} wrap="nowrap">
          <Versions pager={pager} of="message" />
          {edit && !is_editing && (
            <ActionIcon
              variant="subtle"
              color="gray"
              size={28}
              aria-label="Edit the message"
              onClick={() => setEditing(true)}
            >
              <PencilIcon width={16} aria-hidden />
            </ActionIcon>
          )}
        </Group>
      </Group>
      {files.length > 0 && (
        <Group gap="xs" my={4}>
          {files.map((file, index) => (
            <AttachmentView key={index} file={file} />
          ))}
        </Group>
      )}
      {is_editing && edit ? (
        <Editor
          text={turn.text}
          send={(text) => {
            setEditing(false);
            edit(text);
          }}
          cancel={() => setEditing(false)}
        />
      ) : (
        <Text style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>{turn.text}</Text>
      )}
    </Box>
  );
}

function Editor({ text, send, cancel }: { text: string; send: (text: string) => void; cancel: () => void }) {
  const [written, setWritten] = useState(text);
  const can_send = written.trim() !== '';
  return (
    <>
      <Textarea
        aria-label="The message, changed"
        autoFocus
        autosize
        minRows={2}
        maxRows={12}
        value={written}
        onChange={({ currentTarget }) => setWritten(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') cancel();
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (can_send && !event.repeat) send(written); // held, it has opened the editor
        }}
      />
      <Group gap="xs" mt="xs">
        <Button size="xs" onClick={() => send(written)} disabled={!can_send}>
          Ask again
        </Button>
        <Button size="xs" variant="default" onClick={cancel}>
          Cancel
        </Button>
        <Text size="xs" c="dimmed">
          What was said before stays as another version.
        </Text>
      </Group>
    </>
  );
}
