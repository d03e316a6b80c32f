import { NumberInput, Stack, Tabs, Textarea } from '@mantine/core';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { Card } from '../../ui/Page.tsx';
import { samplesOf } from '../../ui/samples.ts';
import { Samples } from '../../ui/Samples.tsx';
import { bodyOf, readTools, type Settings, type Turn } from './conversation.ts';

type Props = { model: ModelView; settings: Settings; setSettings: (settings: Settings) => void; turns: Turn[] };

/** What is sent along with every message, and the program that would send the same. */
export function ChatSettings(props: Props) {
  const { me } = usePlace();
  const { model, settings, turns } = props;
  const said: Turn[] = turns.length === 0 ? [{ role: 'user', text: 'Hello!' }] : turns;
  const { model: _, ...input } = bodyOf(model.id, said, settings);
  return (
    <Card>
      <Tabs defaultValue="settings" keepMounted={false}>
        <Tabs.List mb="md" aria-label="The call as">
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
          <Tabs.Tab value="code">Code</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="settings">
          <Controls {...props} />
        </Tabs.Panel>
        <Tabs.Panel value="code">
          <Samples samples={samplesOf({ base_url: me.base_url, model, input })} />
        </Tabs.Panel>
      </Tabs>
    </Card>
  );
}

function Controls({ model, settings, setSettings }: Props) {
  const { system, max_tokens, temperature, tools } = settings;
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
        label="Most tokens of the answer"
        description="What is held is for this many."
        min={1}
        {...(most !== undefined && { max: most })}
        allowDecimal={false}
        value={max_tokens ?? ''}
        onChange={(value) => set({ max_tokens: number(value) })}
      />
      <NumberInput
        label="Temperature"
        description="Empty: as the model has it. Some models take none."
        min={0}
        max={2}
        step={0.1}
        value={temperature ?? ''}
        onChange={(value) => set({ temperature: number(value) })}
      />
      <Textarea
        label="Tools (JSON)"
        description="A list, as the chat-completions style has it. What the model calls is shown, and you say what it found."
        error={readTools(tools) === undefined && 'This is not a list in JSON yet.'}
        placeholder='[{"type": "function", "function": {"name": "weather", "parameters": {…}}}]'
        autosize
        minRows={2}
        maxRows={10}
        value={tools}
        spellCheck={false}
        onChange={({ currentTarget }) => set({ tools: currentTarget.value })}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12 } }}
      />
    </Stack>
  );
}
