import { Select, Stack, Tabs } from '@mantine/core';
import { useState } from 'react';
import type { ChatStyle } from '../../../src/dashboard/views/playground.ts';
import { CodeBox } from './Copy.tsx';
import type { Sample } from './languages.ts';
import { style_choices } from './samples.ts';

/** The same call in several languages. */
export function Samples({ samples, height = 420 }: { samples: Sample[]; height?: number }) {
  const [first] = samples;
  return (
    <Tabs defaultValue={first?.name ?? ''} variant="pills" keepMounted={false}>
      <Tabs.List mb="sm" aria-label="Languages">
        {samples.map(({ name }) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {samples.map(({ name, text }) => (
        <Tabs.Panel key={name} value={name}>
          <CodeBox text={text} label={`${name} code`} height={height} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

/** A call of a chat model in several languages, in the style that one likes better. */
export function ChatSamples({
  begin = 'completions',
  samplesIn,
}: {
  begin?: ChatStyle;
  samplesIn: (style: ChatStyle) => Sample[];
}) {
  const [style, setStyle] = useState(begin);
  return (
    <Stack gap="sm">
      <Select
        label="Style of the call"
        allowDeselect={false}
        maw={280}
        value={style}
        onChange={(value) => value !== null && setStyle(value)}
        data={style_choices}
      />
      <Samples key={style} samples={samplesIn(style)} />
    </Stack>
  );
}
