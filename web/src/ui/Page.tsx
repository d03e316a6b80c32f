import { Group, Paper, Stack, Text, Title, type PaperProps } from '@mantine/core';
import { useEffect, type ReactNode } from 'react';
import { NotUpToDate } from './NotUpToDate.tsx';

/** A page: its one heading, what can be done with all of it, its parts. */
export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Medley`;
  }, [title]);
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="sm">
        <div style={{ flex: '1 1 300px', minWidth: 0 }}>
          <Title order={1}>{title}</Title>
          {about && (
            <Text c="dimmed" mt={2} component="div">
              {about}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      <NotUpToDate />
      {children}
    </Stack>
  );
}

type CardProps = PaperProps & { title?: ReactNode; side?: ReactNode; children: ReactNode };

/** One thing of a page, with a heading of its own. */
export function Card({ title, side, children, ...rest }: CardProps) {
  return (
    <Paper withBorder p="md" radius="md" component="section" style={{ background: 'var(--medley-surface)' }} {...rest}>
      {(title !== undefined || side !== undefined) && (
        <Group justify="space-between" mb="sm" gap="xs">
          {title !== undefined && <Title order={2}>{title}</Title>}
          {side}
        </Group>
      )}
      {children}
    </Paper>
  );
}

/** One figure with its name, and what it means. */
export function Figure({ name, value, note }: { name: string; value: ReactNode; note?: ReactNode }) {
  return (
    <div>
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text size="xl" fw={650} className="figure" component="div">
        {value}
      </Text>
      {note && (
        <Text size="xs" c="dimmed" component="div">
          {note}
        </Text>
      )}
    </div>
  );
}
