import { ActionIcon, Anchor, Group, Text } from '@mantine/core';
import { DocumentTextIcon, LinkIcon, MusicalNoteIcon, TrashIcon } from '@heroicons/react/24/outline';
import { atFirstClick } from '../../ui/first-click.ts';
import { dataUrl } from './attachments.ts';
import type { Attachment } from './turn.ts';

/** A file of a chat, small, with a button that takes it away where it is not sent yet. */
export function AttachmentView({ file, remove }: { file: Attachment; remove?: () => void }) {
  const { kind, name } = file;
  const Icon = kind === 'link' ? LinkIcon : kind === 'audio' ? MusicalNoteIcon : DocumentTextIcon;
  return (
    <Group gap={6} wrap="nowrap" maw="100%">
      {kind === 'image' ? (
        <img src={dataUrl(file)} alt="" style={{ width: 44, height: 44, objectFit: 'cover', borderRadius: 6 }} />
      ) : (
        <Icon width={20} aria-hidden style={{ flexShrink: 0 }} />
      )}
      {kind === 'link' ? (
        <Anchor
          href={file.url}
          target="_blank"
          rel="noopener noreferrer nofollow"
          c="inherit"
          underline="always"
          size="sm"
          truncate
          maw={180}
        >
          {name}
        </Anchor>
      ) : (
        <Text size="sm" truncate maw={180} title={name}>
          {name}
        </Text>
      )}
      {remove && (
        <ActionIcon
          variant="subtle"
          color="gray"
          size={28}
          aria-label={`Remove ${name}`}
          onClick={atFirstClick(remove)}
        >
          <TrashIcon width={16} aria-hidden />
        </ActionIcon>
      )}
    </Group>
  );
}
