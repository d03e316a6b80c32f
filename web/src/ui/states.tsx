import { Alert, Button, Code, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failure } from '../api.ts';

/** The four states of everything that is loaded: waiting (as high as what comes), failed, empty, there. */
export function Loaded<T>({
  query,
  height = 200,
  children,
}: {
  query: UseQueryResult<T>;
  height?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <Failed error={query.error} retry={() => void query.refetch()} />;
  return (
    <div role="status" aria-label="Loading">
      <Stack gap={12}>
        {Array.from({ length: Math.max(1, Math.round(height / 52)) }, (_, row) => (
          <Skeleton key={row} height={40} radius="md" />
        ))}
      </Stack>
    </div>
  );
}

export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  const is_missing = error instanceof Failure && error.status === 404;
  return (
    <Alert
      role="alert"
      color="red"
      variant="light"
      icon={<ExclamationTriangleIcon aria-hidden />}
      title={is_missing ? 'There is nothing here' : 'This did not work'}
    >
      <Reason error={error} retry={is_missing ? undefined : retry} />
    </Alert>
  );
}

/** The words of an error, with the id of its request for whoever is asked about it, and a button to try again. */
export function Reason({ error, retry }: { error: Error; retry: (() => void) | undefined }) {
  const id = error instanceof Failure ? error.request_id : undefined;
  return (
    <Stack gap="xs" align="flex-start">
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {error.message}
      </Text>
      {id && (
        <Text size="xs" c="dimmed">
          Request <Code style={{ overflowWrap: 'anywhere' }}>{id}</Code>
        </Text>
      )}
      {retry && (
        <Button size="xs" variant="default" onClick={retry}>
          Try again
        </Button>
      )}
    </Stack>
  );
}

/** An empty state: its reason, and the one thing to do next. */
export function Empty({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Paper withBorder p="xl" radius="md" style={{ background: 'var(--medley-surface)' }}>
      <Stack align="center" gap="sm" py="lg">
        <Title order={2} ta="center">
          {title}
        </Title>
        {children && (
          <Text c="dimmed" ta="center" w="100%" maw={520} component="div">
            {children}
          </Text>
        )}
        {action && <Group mt="xs">{action}</Group>}
      </Stack>
    </Paper>
  );
}
