import { Anchor, Center, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useEffect, type ReactNode } from 'react';
import { below } from '../../below.ts';
import { language, languageName, languages, showInBrowser } from '../../ui/language.ts';

/** Frame of the pages before the dashboard: one form on an empty page. */
export function EntryPage({ title, about, children }: { title: string; about?: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Medley`;
  }, [title]);
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper
        withBorder
        radius="lg"
        p={{ base: 'lg', sm: 'xl' }}
        w="100%"
        maw={420}
        style={{ background: 'var(--medley-surface)' }}
      >
        <Stack>
          <Group gap={10}>
            <img src={below('/icon.svg')} width={32} height={32} alt="" />
            <Text fw={700} size="lg">
              Medley
            </Text>
          </Group>
          <div>
            <Title order={1} size="h2">
              {title}
            </Title>
            {about && (
              <Text c="dimmed" size="sm" mt={4} component="div">
                {about}
              </Text>
            )}
          </div>
          {children}
          <Group justify="space-between">
            <Anchor href={below('/guide/reference')} size="sm" c="dimmed">
              API reference
            </Anchor>
            <Group gap="sm">
              {languages
                .filter((other) => other !== language)
                .map((other) => (
                  <Anchor
                    key={other}
                    component="button"
                    type="button"
                    size="sm"
                    lang={other}
                    onClick={() => showInBrowser(other)}
                  >
                    {languageName(other)}
                  </Anchor>
                ))}
            </Group>
          </Group>
        </Stack>
      </Paper>
    </Center>
  );
}
