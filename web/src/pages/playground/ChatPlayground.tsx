import { Grid, SimpleGrid, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { PromptView } from '../../../../src/dashboard/views/playground.ts';
import { usePlace } from '../../session.tsx';
import { sizeOf, takenBy } from './attachments.ts';
import { TableRun } from './batch/TableRun.tsx';
import { Compare } from './beside/Compare.tsx';
import { ChatColumn } from './ChatColumn.tsx';
import { ChatPriceLine } from './ChatPriceLine.tsx';
import { ChatSettings } from './ChatSettings.tsx';
import { Composer } from './Composer.tsx';
import { Conversations } from './Conversations.tsx';
import { attachmentsIn, readTools, settingsIn, type Settings } from './conversation.ts';
import { Prompts } from './prompts/Prompts.tsx';
import { useTemplate } from './prompts/useTemplate.ts';
import { Variables } from './prompts/Variables.tsx';
import type { Replay } from './replay/replay.ts';
import { SourceNote } from './replay/SourceNote.tsx';
import { empty_thread, isAnswering, pathOf } from './thread.ts';
import { useChatPrice, type ChatPrice } from './useChatPrice.ts';
import { useConversation } from './useConversation.ts';
import type { Turn } from './turn.ts';

type Props = {
  model: ModelView;
  others: ModelView[];
  /** Ids of the models that are asked the same. */
  beside: string[];
  setBeside: (ids: string[]) => void;
  /** The id of the conversation; undefined for a new one. */
  chat: string | undefined;
  setChat: (id: string | undefined) => void;
  /** Opens a conversation with its models. */
  openChat: (id: string, models: string[]) => void;
  /** The saved prompt that is open. */
  prompt: PromptView | undefined;
  openPrompt: (id: string | undefined) => void;
  /** A stored call to begin with. */
  replay: Replay | undefined;
  /** Settings that the address brought along. */
  begin: Record<string, unknown> | undefined;
};

const at_once_max = 3;

/** The state of the page: what is written, and what was said. */
function useChat({ model, others, beside, chat, setChat, prompt, replay, begin }: Props) {
  const { may } = usePlace();
  const [settings, setSettings] = useState<Settings>(() => replay?.settings ?? settingsIn(begin));
  const template = useTemplate({ model: model.id, prompt, settings, setSettings });
  const compared = beside.flatMap((id) => others.filter((one) => one.id === id && id !== model.id));
  const models = [model, ...compared].slice(0, at_once_max);
  const conversation = useConversation({
    models: models.map(({ id }) => id),
    settings,
    sent_settings: template.filled_settings,
    id: chat,
    setId: setChat,
    replay,
    onOpen: (opened) => setSettings(opened.settings),
  });
  const { threads } = conversation;
  const turns: Record<string, Turn[]> = Object.fromEntries(
    models.map(({ id }) => [id, pathOf(threads[id] ?? empty_thread).map(({ turn }) => turn)]),
  );
  const is_streaming = models.some(({ id }) => isAnswering(threads[id]));
  const price = useChatPrice({
    models,
    turns,
    draft: template.filled_draft,
    settings: template.filled_settings,
    is_streaming,
  });
  const is_wrong =
    price.state === 'known' && price.estimates.some((one) => !one.ok || one.obstacle === 'account_blocked');
  const can_call = may('run') && readTools(settings.tools) !== undefined;
  return {
    settings,
    setSettings,
    template,
    compared,
    models,
    conversation,
    turns,
    is_streaming,
    price,
    is_wrong,
    can_call,
  };
}

/** A conversation, with up to three models side by side. */
export function ChatPlayground(props: Props) {
  const { model } = props;
  const [has_table, setHasTable] = useState(false);
  const page = useChat(props);
  const { settings, template, models, conversation, turns, is_streaming, can_call } = page;
  const all_turns = models.map(({ id }) => turns[id] ?? []);
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: models.length > 2 ? 9 : 8 }}>
        <Stack>
          {conversation.source && <SourceNote source={conversation.source} is_saved={conversation.id !== undefined} />}
          {conversation.notice !== undefined && <Text role="status">{conversation.notice}</Text>}
          <SimpleGrid cols={{ base: 1, sm: models.length }}>
            {models.map((one) => (
              <ChatColumn
                key={one.id}
                model={one}
                thread={conversation.threads[one.id] ?? empty_thread}
                conversation={conversation}
                can_call={can_call && !is_streaming}
              />
            ))}
          </SimpleGrid>
          <Composer
            draft={template.draft}
            setDraft={template.setDraft}
            send={() => {
              conversation.send(template.filled_draft);
              template.sent();
            }}
            stop={conversation.stop}
            clear={conversation.clear}
            is_streaming={is_streaming}
            has_turns={all_turns.some((each) => each.length > 0)}
            calls_tools={all_turns.some(callsTools)}
            taken={takenBy(models, settings.style)}
            attached_bytes={Math.max(...all_turns.map((each) => sizeOf(attachmentsIn(each))))}
            disabled={!can_call || page.is_wrong || template.missing.length > 0}
            note={<Note missing={template.missing} price={page.price} />}
          />
          <Variables names={template.names} values={template.values} setValues={template.setValues} />
          {has_table && (
            <TableRun
              model={model.id}
              text={template.draft.text}
              settings={settings}
              close={() => setHasTable(false)}
            />
          )}
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: models.length > 2 ? 3 : 4 }}>
        <Side {...props} page={page} openTable={() => setHasTable(true)} />
      </Grid.Col>
    </Grid>
  );
}

function Note({ missing, price }: { missing: readonly string[]; price: ChatPrice }) {
  return missing.length > 0 ? `Fill in ${missing.join(', ')} below.` : <ChatPriceLine price={price} />;
}

type SideProps = Props & { page: ReturnType<typeof useChat>; openTable: () => void };

/** Everything beside the conversation: other models, other conversations, prompts, settings. */
function Side({ model, others, beside, setBeside, openChat, prompt, openPrompt, page, openTable }: SideProps) {
  const { compared, conversation, template, settings, setSettings, turns } = page;
  return (
    <Stack>
      <Compare
        model={model}
        others={others}
        beside={compared}
        setBeside={setBeside}
        models_max={at_once_max}
        description={`Each message goes to every model, up to ${at_once_max} at once.`}
        nothing="No other chat model"
      />
      <Conversations conversation={conversation} openChat={openChat} />
      <Prompts
        prompt={prompt}
        written={template.written}
        has_variables={template.has_variables}
        setHasVariables={template.setHasVariables}
        open={openPrompt}
        restore={template.restore}
        runOnTable={() => {
          template.setHasVariables(true);
          openTable();
        }}
      />
      <ChatSettings
        model={model}
        beside={beside}
        settings={settings}
        setSettings={setSettings}
        sent_settings={template.filled_settings}
        turns={turns[model.id] ?? []}
        draft={template.filled_draft}
      />
    </Stack>
  );
}

function callsTools(turns: Turn[]): boolean {
  const last = turns.at(-1);
  return last?.role === 'assistant' && last.state === 'done' && last.tools.length > 0;
}
