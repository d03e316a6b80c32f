import { Box, Button, Group, Select, Stack, Text, Title } from '@mantine/core';
import { useState } from 'react';
import type { PromptBody, PromptView } from '../../../../../src/dashboard/views/playground.ts';
import { Loaded } from '../../../ui/states.tsx';
import { minute_form } from '../../../ui/dates.ts';
import { diffOf, type DiffLine } from './diff.ts';
import { usePrompt } from './queries.ts';

type Props = { prompt: PromptView; written: PromptBody; restore: (body: PromptBody) => void };

/** An older version beside what stands in the boxes now. */
export function Versions({ prompt: { id, versions, version }, written, restore }: Props) {
  const [chosen, setChosen] = useState(versions.find((each) => each.version < version)?.version ?? version);
  const query = usePrompt(id, chosen);
  return (
    <Stack>
      <Select
        data-autofocus
        label="Version"
        description="The last 100 are there."
        allowDeselect={false}
        maw={420}
        value={String(chosen)}
        onChange={(value) => value !== null && setChosen(Number(value))}
        data={versions.map((each) => ({
          value: String(each.version),
          label: `${each.version} · ${minute_form.format(new Date(each.created_at))}${each.author === null ? '' : ` · ${each.author}`}`,
        }))}
      />
      <Loaded query={query} height={160}>
        {({ body }) => (
          <Stack>
            <Text size="sm" c="dimmed">
              From version {chosen} to what is written now: + is new, − is gone.
            </Text>
            <Difference name="Message" before={body.text} after={written.text} />
            <Difference name="System prompt" before={body.system} after={written.system} />
            <Difference name="Model and fields" before={restOf(body)} after={restOf(written)} />
            <Group>
              <Button size="xs" onClick={() => restore(body)}>
                Use version {chosen}
              </Button>
            </Group>
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}

function restOf({ model, fields }: PromptBody): string {
  return JSON.stringify({ model, ...fields }, undefined, 2);
}

const signs: Record<DiffLine['kind'], string> = { same: ' ', added: '+', removed: '−' };

function Difference({ name, before, after }: { name: string; before: string; after: string }) {
  const lines = diffOf(before, after);
  return (
    <div>
      <Title order={3} size="h4">
        {name}
      </Title>
      {before === after ? (
        <Text size="sm" c="dimmed">
          No difference.
        </Text>
      ) : (
        <Box
          component="pre"
          className="diff"
          tabIndex={0}
          role="group"
          aria-label={`Difference of the ${name.toLowerCase()}`}
        >
          {lines.map(({ kind, text }, index) => {
            const Line = kind === 'added' ? 'ins' : kind === 'removed' ? 'del' : 'span';
            return (
              <Line key={index}>
                {signs[kind]} {text}
              </Line>
            );
          })}
        </Box>
      )}
    </div>
  );
}
