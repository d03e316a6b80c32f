import { Card, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AdminTestCall } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { durationText } from '../../ui/duration.ts';
import { Viewer } from '../../ui/Media.tsx';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';

const looks: Record<string, { of: string; label: string }> = {
  done: { of: 'succeeded', label: 'It works' },
  failed: { of: 'failed', label: 'It failed after it started' },
  refused: { of: 'failed', label: 'The input was refused' },
  'not started': { of: 'failed', label: 'It was not started' },
  unknown: { of: 'failed', label: 'The outcome is unknown' },
};

/** Progress and result of one real call. */
export function TestResult({ begun }: { begun: AdminTestCall }) {
  const { data: test_call = begun, error } = useQuery({
    queryKey: ['admin', 'test-call', begun.id],
    queryFn: ({ signal }) => api.get<AdminTestCall>(`/dash/admin/test-calls/${begun.id}`, { signal }),
    refetchInterval: ({ state }) => (state.data?.is_running === false || state.error ? false : 1_000),
  });
  const { outcome, took_ms, message, text, files, cost, currency, upstream_cost } = test_call;
  const look = test_call.is_running ? { of: 'running', label: 'Running' } : looks[outcome ?? 'unknown'];
  return (
    <Card withBorder p="sm">
      <Stack gap="xs">
        <Group gap="xs" role="status">
          <Status {...(look ?? { of: 'failed' })} />
          <Text size="sm">after {durationText(took_ms)}</Text>
        </Group>
        {error && <Failed error={error} />}
        {message !== null && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {message}
          </Text>
        )}
        {text !== null && <CodeBox text={text} label="response" height={160} />}
        {files.map((file) => (
          <Viewer key={file.url} label="Output" file={{ ...file, type: kindOf(file.content_type) }} />
        ))}
        {cost !== null && (
          <Text size="sm" c="dimmed">
            A customer would have paid {cost} {currency}.
            {upstream_cost !== null &&
              ` The provider reports a charge of ${upstream_cost.amount} ${upstream_cost.currency}.`}
          </Text>
        )}
      </Stack>
    </Card>
  );
}

function kindOf(content_type: string): 'image' | 'video' | 'audio' | 'text' {
  return (['image', 'video', 'audio'] as const).find((kind) => content_type.startsWith(kind)) ?? 'text';
}
