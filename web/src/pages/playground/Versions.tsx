import { ActionIcon, Group, Text } from '@mantine/core';
import { ChevronLeftIcon, ChevronRightIcon } from '@heroicons/react/24/outline';

/** Versions of one turn, the shown one among them. */
export type Pager = { ids: readonly string[]; id: string; show: (id: string) => void };

/** `‹ 2/3 ›`; nothing for a turn with one version. */
export function Versions({ pager: { ids, id, show }, of }: { pager: Pager; of: string }) {
  const at = ids.indexOf(id);
  if (ids.length < 2) return null;
  const step = (name: string, to: string | undefined, Icon: typeof ChevronLeftIcon) => (
    <ActionIcon
      variant="subtle"
      color="gray"
      size={28}
      aria-label={name}
      aria-disabled={to === undefined}
      {...(to === undefined && { 'data-disabled': true })}
      onClick={() => to !== undefined && show(to)}
    >
      <Icon width={16} aria-hidden />
    </ActionIcon>
  );
  return (
    <Group gap={2} wrap="nowrap" role="group" aria-label={`Versions of the ${of}`}>
      {step('Previous version', ids[at - 1], ChevronLeftIcon)}
      <Text size="xs" className="figure" aria-label={`Version ${at + 1} of ${ids.length}`} role="img">
        {at + 1}/{ids.length}
      </Text>
      {step('Next version', ids[at + 1], ChevronRightIcon)}
    </Group>
  );
}
