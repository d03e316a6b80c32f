import { Button, Group, Paper, Text } from '@mantine/core';
import { EyeIcon } from '@heroicons/react/24/outline';
import { useNavigate } from '@tanstack/react-router';
import { useSession } from '../session.tsx';

/** Notice on every page, as long as an operator looks at an account of others. */
export function LookedAt() {
  const { account, leave } = useSession();
  const navigate = useNavigate();
  if (account?.role !== 'operator') return null;
  const end = async () => {
    await navigate({ to: `/admin/accounts/${account.id}` });
    await leave();
  };
  return (
    <Paper
      component="aside"
      aria-label="Viewing another account"
      withBorder
      px="md"
      py="xs"
      mb="lg"
      style={{ borderColor: 'var(--mantine-color-orange-6)', background: 'var(--mantine-color-orange-light)' }}
    >
      <Group justify="space-between" gap="xs">
        <Group gap="xs" wrap="nowrap" style={{ minWidth: 0, flex: '1 1 220px' }}>
          <EyeIcon width={20} aria-hidden style={{ flexShrink: 0 }} />
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            You are viewing <b>{account.name}</b> as an operator. You can see everything and change nothing.
          </Text>
        </Group>
        <Button size="xs" variant="default" onClick={() => void end()}>
          Leave
        </Button>
      </Group>
    </Paper>
  );
}
