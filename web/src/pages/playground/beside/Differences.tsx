import { Stack, Text } from '@mantine/core';
import { useId } from 'react';
import type { Difference, OwnText } from './shared-input.ts';

/** Lists fields that the models do not have in common, and what becomes of them. */
export function Differences({ differences }: { differences: readonly Difference[] }) {
  const id = useId();
  if (differences.length === 0) return null;
  return (
    <div>
      <Text size="sm" fw={600} id={id}>
        Differences
      </Text>
      <Stack component="ul" gap={2} m={0} pl="md" aria-labelledby={id}>
        {differences.map((difference, index) => (
          <Text key={index} component="li" size="sm" c="dimmed">
            <Sentence of={difference} />
          </Text>
        ))}
      </Stack>
    </div>
  );
}

function Sentence({ of: difference }: { of: Difference }) {
  switch (difference.is) {
    case 'only':
      return (
        <>
          Only {difference.models.join(', ')}: {difference.fields.join(', ')}. Left at the default here.
        </>
      );
    case 'needed':
      return (
        <>
          Only {difference.models.join(', ')}: {difference.fields.join(', ')}. Needed there, and not sent to the others.
        </>
      );
    case 'range':
      return (
        <>
          {difference.field}: {ownText(difference.ranges)}. The form takes what all accept.
        </>
      );
    case 'apart':
      return <>{difference.field}: no value suits all of them. Each keeps its default.</>;
    case 'default':
      return (
        <>
          {difference.field}, if you leave it open: {ownText(difference.defaults)}.
        </>
      );
  }
}

function ownText(texts: readonly OwnText[]): string {
  return texts.map(({ models, text }) => `${models.join(', ')} ${text}`).join('; ');
}
