import { Tabs } from '@mantine/core';
import { CodeBox } from './Copy.tsx';
import type { Sample } from './samples.ts';

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
