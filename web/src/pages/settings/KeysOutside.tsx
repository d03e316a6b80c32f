import { Button, Group, List, Stack, Text } from '@mantine/core';
import type { KeyOutsideView } from '../../../../src/dashboard/views/settings.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';

type Props = { name: string; keys: readonly KeyOutsideView[]; close: () => void };

/** The keys of a member that open more than the member sees from now on, with the next step. */
export function KeysOutside({ name, keys, close }: Props) {
  return (
    <Stack>
      <Text size="sm" role="status">
        It is done. These keys that {name} made still work, and open more than {name} may see:
      </Text>
      <List size="sm" aria-label="Keys that still work">
        {keys.map(({ id, name: key_name, project, is_limited }) => (
          <List.Item key={id}>
            <b>{key_name}</b>: {is_limited ? `what is of ${project.name}` : 'all of the account'}
          </List.Item>
        ))}
      </List>
      <Text size="sm">
        Delete them, or rotate those that programs of yours use: <LinkTo href="/keys">API keys</LinkTo>.
      </Text>
      <Group justify="flex-end">
        <Button onClick={close}>Close</Button>
      </Group>
    </Stack>
  );
}
