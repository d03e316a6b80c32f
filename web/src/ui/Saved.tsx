import { Text } from '@mantine/core';

/** Says that what was chosen is saved, to screen readers too. Teal of the theme is too light on white: 2.5 to 1. */
export function Saved({ is_saved }: { is_saved: boolean }) {
  return (
    <Text
      size="sm"
      role="status"
      aria-live="polite"
      c="light-dark(var(--mantine-color-teal-9), var(--mantine-color-teal-4))"
    >
      {is_saved ? 'Saved.' : ''}
    </Text>
  );
}
