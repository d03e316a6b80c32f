import { Radio, Stack, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { Card } from '../../ui/Page.tsx';

const schemes: { value: MantineColorScheme; label: string; description: string }[] = [
  { value: 'auto', label: 'As the system', description: 'Follows the setting of this device.' },
  { value: 'light', label: 'Light', description: 'Dark text on a light page.' },
  { value: 'dark', label: 'Dark', description: 'Light text on a dark page.' },
];

/** Kept in this browser. */
export function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Card title="Colours">
      <Radio.Group
        aria-label="Colours"
        description="Remembered in this browser."
        value={colorScheme}
        onChange={(chosen) => {
          const scheme = schemes.find(({ value }) => value === chosen);
          if (scheme) setColorScheme(scheme.value);
        }}
      >
        <Stack gap="sm" mt="sm">
          {schemes.map((scheme) => (
            <Radio key={scheme.value} {...scheme} />
          ))}
        </Stack>
      </Radio.Group>
    </Card>
  );
}
