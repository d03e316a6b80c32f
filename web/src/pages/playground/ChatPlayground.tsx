import { Button, Grid, Group, MultiSelect, SimpleGrid, Stack, Textarea } from '@mantine/core';
import { PaperAirplaneIcon, StopIcon } from '@heroicons/react/24/solid';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { ChatColumn } from './ChatColumn.tsx';
import { ChatSettings } from './ChatSettings.tsx';
import { readTools, type Settings, type Turn } from './conversation.ts';
import { useChats } from './useChats.ts';

type Props = {
  model: ModelView;
  others: ModelView[];
  /** Ids of the models that are asked the same. */
  beside: string[];
  setBeside: (ids: string[]) => void;
};

const at_once_max = 3;

/** A conversation, with up to three models side by side. */
export function ChatPlayground({ model, others, beside, setBeside }: Props) {
  const { may } = usePlace();
  const [settings, setSettings] = useState<Settings>({
    system: '',
    max_tokens: 1_000,
    temperature: undefined,
    tools: '',
  });
  const { turns, ask, stop, clear } = useChats();
  const asked = beside.flatMap((id) => others.filter((one) => one.id === id && id !== model.id));
  const models = [model, ...asked].slice(0, at_once_max);
  const is_streaming = models.some(({ id }) => isStreaming(turns[id]));
  const send = (text: string) => {
    for (const { id } of models) void ask(id, text, settings);
  };
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: models.length > 1 ? 9 : 8 }}>
        <Stack>
          <SimpleGrid cols={{ base: 1, sm: models.length }}>
            {models.map((one) => (
              <ChatColumn key={one.id} model={one} turns={turns[one.id] ?? []} />
            ))}
          </SimpleGrid>
          <Composer
            send={send}
            stop={stop}
            clear={clear}
            is_streaming={is_streaming}
            has_turns={models.some(({ id }) => (turns[id] ?? []).length > 0)}
            calls_tools={models.some(({ id }) => callsTools(turns[id]))}
            disabled={!may('run') || readTools(settings.tools) === undefined}
          />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: models.length > 1 ? 3 : 4 }}>
        <Stack>
          <MultiSelect
            label="Beside it"
            description={`The same is asked of each: up to ${at_once_max} models at once.`}
            searchable
            maxValues={at_once_max - 1}
            value={asked.map(({ id }) => id)}
            onChange={setBeside}
            data={others
              .filter(({ id }) => id !== model.id)
              .map(({ id, display_name }) => ({ value: id, label: display_name }))}
            placeholder={asked.length === 0 ? 'Compare with…' : ''}
            nothingFoundMessage="No other chat model"
          />
          <ChatSettings model={model} settings={settings} setSettings={setSettings} turns={turns[model.id] ?? []} />
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

function isStreaming(turns: Turn[] | undefined): boolean {
  const last = turns?.at(-1);
  return last?.role === 'assistant' && last.state === 'streaming';
}

function callsTools(turns: Turn[] | undefined): boolean {
  const last = turns?.at(-1);
  return last?.role === 'assistant' && last.state === 'done' && last.tools.length > 0;
}

type ComposerProps = {
  send: (text: string) => void;
  stop: () => void;
  clear: () => void;
  is_streaming: boolean;
  has_turns: boolean;
  /** The next thing that is said is what a tool has found. */
  calls_tools: boolean;
  disabled: boolean;
};

function Composer({ send, stop, clear, is_streaming, has_turns, calls_tools, disabled }: ComposerProps) {
  const [text, setText] = useState('');
  const can_send = !disabled && !is_streaming && text.trim() !== '';
  const go = () => {
    if (!can_send) return;
    send(text);
    setText('');
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        go();
      }}
    >
      <Textarea
        label={calls_tools ? 'Result of the tool' : 'Message'}
        description="Ctrl or ⌘ and Enter sends it."
        autosize
        minRows={3}
        maxRows={12}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          go();
        }}
      />
      <Group mt="sm">
        {is_streaming ? (
          <Button color="red" variant="light" onClick={stop} leftSection={<StopIcon width={18} aria-hidden />}>
            Stop
          </Button>
        ) : (
          <Button type="submit" disabled={!can_send} leftSection={<PaperAirplaneIcon width={18} aria-hidden />}>
            Send
          </Button>
        )}
        {has_turns && !is_streaming && (
          <Button variant="subtle" color="gray" onClick={clear}>
            Begin anew
          </Button>
        )}
      </Group>
    </form>
  );
}
