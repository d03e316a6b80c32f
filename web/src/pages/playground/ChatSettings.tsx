import { Group, NumberInput, Select, Stack, Tabs, Textarea } from '@mantine/core';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { Card } from '../../ui/Page.tsx';
import { chatSamples, style_choices } from '../../ui/samples.ts';
import { ChatSamples } from '../../ui/Samples.tsx';
import { blank_draft, type Draft } from './Composer.tsx';
import { fieldsOf, nextTurn, readTools, sharedSettings, withFields, type Settings } from './conversation.ts';
import { JsonBox } from './JsonBox.tsx';
import { ShareButton } from './ShareButton.tsx';
import { styles } from './styles/styles.ts';
import type { Turn } from './turn.ts';

type Props = {
  model: ModelView;
  beside: string[];
  settings: Settings;
  setSettings: (settings: Settings) => void;
  /** With the values of variables. */
  sent_settings: Settings;
  turns: Turn[];
  draft: Draft;
};

/** Settings that are sent with every message, and the program that would send the same. */
export function ChatSettings(props: Props) {
  const { model, beside, settings, setSettings } = props;
  return (
    <Card>
      <Tabs defaultValue="settings" keepMounted={false} styles={{ tab: { paddingInline: 10 } }}>
        <Tabs.List mb="md" aria-label="The call as">
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
          <Tabs.Tab value="json">JSON</Tabs.Tab>
          <Tabs.Tab value="code">Code</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="settings">
          <Controls {...props} />
        </Tabs.Panel>
        <Tabs.Panel value="json">
          <JsonBox
            label="Fields of the call"
            description="All fields except the model and the messages. Fields without a control work here, too."
            value={fieldsOf(settings)}
            onChange={(fields) => setSettings(withFields(settings, fields))}
          />
        </Tabs.Panel>
        <Tabs.Panel value="code">
          <Code {...props} />
        </Tabs.Panel>
      </Tabs>
      <Group mt="sm" justify="flex-end">
        <ShareButton model={model.id} beside={beside.join(',')} input={sharedSettings(settings)} />
      </Group>
    </Card>
  );
}

/** The next call, as a program would make it. */
function Code({ model, sent_settings: settings, turns, draft }: Props) {
  const { me } = usePlace();
  const is_written = draft.text.trim() !== '' || draft.files.length > 0;
  const { text, files } = is_written ? draft : { ...blank_draft, text: 'Hello!' };
  const sample_turns = is_written || turns.length === 0 ? [...turns, nextTurn(turns, text, files)] : turns;
  return (
    <ChatSamples
      begin={settings.style}
      samplesIn={(style) => chatSamples(me.base_url, style, styles[style].bodyOf(model.id, sample_turns, settings))}
    />
  );
}

function Controls({ model, settings, setSettings }: Props) {
  const { style, system, max_tokens, temperature, tools } = settings;
  const set = (change: Partial<Settings>) => setSettings({ ...settings, ...change });
  const number = (value: string | number) => (typeof value === 'number' ? value : undefined);
  const most = model.limits['max_output_tokens'];
  return (
    <Stack>
      <Textarea
        label="System prompt"
        autosize
        minRows={3}
        maxRows={10}
        value={system}
        onChange={({ currentTarget }) => set({ system: currentTarget.value })}
      />
      <NumberInput
        label="Maximum output tokens"
        description="The hold covers this many."
        min={1}
        {...(most !== undefined && { max: most })}
        allowDecimal={false}
        value={max_tokens ?? ''}
        onChange={(value) => set({ max_tokens: number(value) })}
      />
      <NumberInput
        label="Temperature"
        description="Empty: the model's default. Some models do not accept it."
        min={0}
        max={2}
        step={0.1}
        value={temperature ?? ''}
        onChange={(value) => set({ temperature: number(value) })}
      />
      <Textarea
        label="Tools (JSON)"
        description="A list in the chat-completions format. Tool calls are shown, and you enter their results."
        error={readTools(tools) === undefined && 'This is not a JSON list yet.'}
        placeholder='[{"type": "function", "function": {"name": "weather", "parameters": {…}}}]'
        autosize
        minRows={2}
        maxRows={10}
        value={tools}
        spellCheck={false}
        onChange={({ currentTarget }) => set({ tools: currentTarget.value })}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12 } }}
      />
      <Select
        label="Style of the call"
        description="Every style reaches every model; the stream has the format of the style."
        allowDeselect={false}
        value={style}
        onChange={(value) => value !== null && set({ style: value })}
        data={style_choices}
      />
    </Stack>
  );
}
