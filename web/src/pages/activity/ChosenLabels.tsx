import { Button, Text } from '@mantine/core';
import { XMarkIcon } from '@heroicons/react/24/outline';
import { chosenLabels } from './filters.ts';
import type { ActivitySearch, ActivityTab } from './search.ts';

type Props = { tab: ActivityTab; search: ActivitySearch; set: (change: ActivitySearch) => void };

/** The filters by what is said of a call, each with a way to remove it. */
export function ChosenLabels({ tab, search, set }: Props) {
  const labels = chosenLabels(tab, search).map(({ parameter, name, value }) => ({
    parameter,
    text: `${name}: ${value}`,
  }));
  return (
    <>
      {labels.map(({ parameter, text }) => (
        <Button
          key={parameter}
          variant="light"
          maw="100%"
          aria-label={`Remove ${text}`}
          rightSection={<XMarkIcon width={16} aria-hidden />}
          onClick={() => set({ [parameter]: undefined })}
        >
          <Text span inherit truncate>
            {text}
          </Text>
        </Button>
      ))}
    </>
  );
}
