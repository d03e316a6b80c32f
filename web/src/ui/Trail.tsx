import { Group, Text } from '@mantine/core';
import { Id } from './Copy.tsx';
import { LinkTo } from './LinkTo.tsx';

/** Below the title of one thing: the list that it is in, and its id. */
export function Trail({ list, href, id }: { list: string; href: string; id: string }) {
  return (
    <Group mt={4} gap={6} wrap="nowrap">
      <LinkTo href={href} size="sm">
        {list}
      </LinkTo>
      <Text span size="sm" aria-hidden>
        /
      </Text>
      <Id id={id} />
    </Group>
  );
}
