import { Radio, Select, Stack, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { api } from '../../api.ts';
import { useSession } from '../../session.tsx';
import { languageName, languages, showAsChosen } from '../../ui/language.ts';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';

const schemes: { value: MantineColorScheme; label: string; description: string }[] = [
  { value: 'auto', label: 'As the system', description: 'Follows the setting of this device.' },
  { value: 'light', label: 'Light', description: 'Dark text on a light page.' },
  { value: 'dark', label: 'Dark', description: 'Light text on a dark page.' },
];

/** The language and the colours of the dashboard. */
export function Appearance() {
  return (
    <Stack>
      <Language />
      <Colours />
    </Stack>
  );
}

const as_browser = '';

/** Stored with the person: it follows them to other browsers. */
function Language() {
  const { me } = useSession();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (language: string | null) => api.put('/dash/me/language', { language }),
    onSuccess: (_, language) => showAsChosen(language),
  });
  const choices = languages.map((code) => ({ value: code, label: languageName(code) }));
  return (
    <Card title="Language">
      <Stack maw={480}>
        <Select
          label="Language of the dashboard"
          description="Follows you to other browsers. Mails, the guide and messages of the API are in English."
          data={[{ value: as_browser, label: 'As the browser' }, ...choices]}
          value={me.user.language ?? as_browser}
          allowDeselect={false}
          disabled={isPending}
          onChange={(chosen) => mutate(chosen === null || chosen === as_browser ? null : chosen)}
        />
        {error && <Failed error={error} />}
      </Stack>
    </Card>
  );
}

/** Kept in this browser. */
function Colours() {
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
