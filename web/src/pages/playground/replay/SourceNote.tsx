import { Alert, List, Text } from '@mantine/core';
import { LinkTo } from '../../../ui/LinkTo.tsx';
import type { Source } from '../saved-conversation.ts';

type Props = { source: Source; is_saved: boolean };

/** Says from which call a conversation was opened, and what of it cannot be sent again. */
export function SourceNote({ source: { call, notes }, is_saved }: Props) {
  return (
    <Alert variant="light" color="gray" title="From a stored call" role="note">
      <Text size="sm">
        Change a message or the settings, or ask for the answer again.{' '}
        {!is_saved && 'Nothing is saved in this browser until then. '}
        <LinkTo href={`/chats/${call}`} size="sm">
          The call
        </LinkTo>
      </Text>
      {notes.length > 0 && (
        <List size="sm" mt={4} aria-label="Differences from the call">
          {notes.map((note) => (
            <List.Item key={note}>{note}</List.Item>
          ))}
        </List>
      )}
    </Alert>
  );
}
