import { ActionIcon, Box, Code, Group, ScrollArea, Tooltip } from '@mantine/core';
import { CheckIcon, ClipboardDocumentIcon } from '@heroicons/react/24/outline';
import { useCopying } from './useCopying.ts';

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const { copied, copy } = useCopying(text);
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon
        variant="subtle"
        color={copied ? 'teal' : 'gray'}
        onClick={copy}
        aria-label={copied ? 'Copied' : label}
      >
        {copied ? <CheckIcon width={18} aria-hidden /> : <ClipboardDocumentIcon width={18} aria-hidden />}
      </ActionIcon>
    </Tooltip>
  );
}

/** Text for a machine, as it is, and a button that copies it. Long lines are broken where one reads them; what is copied has none. */
export function CodeBox({ text, label, height = 360 }: { text: string; label: string; height?: number }) {
  return (
    <Box pos="relative">
      <ScrollArea.Autosize
        mah={height}
        type="auto"
        viewportProps={{ tabIndex: 0, 'aria-label': label, role: 'region' }}
      >
        <Code block pr={44} style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {text}
        </Code>
      </ScrollArea.Autosize>
      <Box pos="absolute" top={4} right={4} style={{ background: 'var(--medley-surface)', borderRadius: 8 }}>
        <Copy text={text} label={`Copy ${label}`} />
      </Box>
    </Box>
  );
}

/** An id that one wants to copy, cut in the middle of the line rather than of the page. */
export function Id({ id }: { id: string }) {
  return (
    <Group gap={2} wrap="nowrap" miw={0}>
      <Code miw={0} style={{ overflow: 'hidden', textOverflow: 'ellipsis' }}>
        {id}
      </Code>
      <Copy text={id} label="Copy the id" />
    </Group>
  );
}
