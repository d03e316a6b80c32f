import { Button, Text } from '@mantine/core';
import { XMarkIcon } from '@heroicons/react/24/outline';
import type { ChosenLabel } from './filters.ts';
import type { LabelSearch } from './search.ts';

type Props = { labels: readonly ChosenLabel[]; set: (change: LabelSearch) => void };

/** The filters by what is said of a call, each with a way to remove it. */
export function ChosenLabels({ labels, set }: Props) {
  const buttons = labels.map(({ parameter, name, value }) => ({ parameter, text: `${name}: ${value}` }));
  return (
    <>
      {buttons.map(({ parameter, text }) => (
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
