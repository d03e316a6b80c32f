import { Grid, MultiSelect, SimpleGrid, Stack } from '@mantine/core';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { sizeOf, takenBy } from './attachments.ts';
import { ChatColumn } from './ChatColumn.tsx';
import { ChatPriceLine } from './ChatPriceLine.tsx';
import { ChatSettings } from './ChatSettings.tsx';
import { Composer, blank_draft, type Draft } from './Composer.tsx';
import { attachmentsIn, readTools, settingsIn, type Settings, type Turn } from './conversation.ts';
import { useChatPrice } from './useChatPrice.ts';
import { useChats } from './useChats.ts';

type Props = {
  model: ModelView;
  others: ModelView[];
  /** Ids of the models that are asked the same. */
  beside: string[];
  setBeside: (ids: string[]) => void;
  /** Settings that the address brought along. */
  begin: Record<string, unknown> | undefined;
};

const at_once_max = 3;

/** A conversation, with up to three models side by side. */
export function ChatPlayground({ model, others, beside, setBeside, begin }: Props) {
  const { may } = usePlace();
  const [settings, setSettings] = useState<Settings>(() => settingsIn(begin));
  const [draft, setDraft] = useState<Draft>(blank_draft);
  const { turns, ask, stop, clear } = useChats();
  const compared = beside.flatMap((id) => others.filter((one) => one.id === id && id !== model.id));
  const models = [model, ...compared].slice(0, at_once_max);
  const is_streaming = models.some(({ id }) => isStreaming(turns[id]));
  const price = useChatPrice({ models, turns, draft, settings, is_streaming });
  const is_wrong =
    price.state === 'known' && price.estimates.some((one) => !one.ok || one.obstacle === 'account_blocked');
  const send = () => {
    for (const { id } of models) void ask(id, draft, settings);
    setDraft(blank_draft);
  };
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: models.length > 2 ? 9 : 8 }}>
        <Stack>
          <SimpleGrid cols={{ base: 1, sm: models.length }}>
            {models.map((one) => (
              <ChatColumn key={one.id} model={one} turns={turns[one.id] ?? []} />
            ))}
          </SimpleGrid>
          <Composer
            draft={draft}
            setDraft={setDraft}
            send={send}
            stop={stop}
            clear={clear}
            is_streaming={is_streaming}
            has_turns={models.some(({ id }) => (turns[id] ?? []).length > 0)}
            calls_tools={models.some(({ id }) => callsTools(turns[id]))}
            taken={takenBy(models, settings.style)}
            attached_bytes={Math.max(...models.map(({ id }) => sizeOf(attachmentsIn(turns[id] ?? []))))}
            disabled={!may('run') || readTools(settings.tools) === undefined || is_wrong}
            note={<ChatPriceLine price={price} />}
          />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: models.length > 2 ? 3 : 4 }}>
        <Stack>
          <MultiSelect
            label="Compare"
            description={`Each message goes to every model, up to ${at_once_max} at once.`}
            searchable
            maxValues={at_once_max - 1}
            value={compared.map(({ id }) => id)}
            onChange={setBeside}
            data={others
              .filter(({ id }) => id !== model.id)
              .map(({ id, display_name }) => ({ value: id, label: display_name }))}
            placeholder={compared.length === 0 ? 'Compare with…' : ''}
            nothingFoundMessage="No other chat model"
          />
          <ChatSettings
            model={model}
            beside={beside}
            settings={settings}
            setSettings={setSettings}
            turns={turns[model.id] ?? []}
            draft={draft}
          />
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
