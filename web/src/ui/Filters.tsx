import { Button, Group, Select, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import type { KeyboardEvent, ReactNode } from 'react';
import type { FoundChoices } from './key-choices.ts';

/** Two beside each other on a phone, where they are wide enough to be read. */
const half = { base: 'calc(50% - 6px)' };
const readable = { base: 136, xs: 'auto' };

/** Choices that narrow a list; they are part of the address, so a list can be sent to somebody. */
export function Filters({
  children,
  isFiltered,
  clear,
}: {
  children: ReactNode;
  isFiltered: boolean;
  clear: () => void;
}) {
  return (
    <Group gap="sm" align="flex-end" role="search" aria-label="Filters">
      {children}
      {isFiltered && (
        <Button variant="subtle" color="gray" onClick={clear}>
          Clear
        </Button>
      )}
    </Group>
  );
}

/**
 * A list of choices that one types into: the first that fits is marked, and Enter takes it. On a phone a short list is only a list, without
 * a keyboard over it.
 */
export const typed_choice = {
  searchable: true,
  openOnFocus: false,
  selectFirstOptionOnChange: true,
  nothingFoundMessage: 'Nothing fits',
  onFocus: ({ currentTarget }: { currentTarget: HTMLInputElement }) => currentTarget.select(),
  onKeyDownCapture: takeMarked,
  comboboxProps: { transitionProps: { duration: 0 } }, // the list is there before the next key is
} as const;

/**
 * Enter takes the choice that is marked, or the first when the chosen one is not in the list. The library forgets its mark at times when
 * a list opens under somebody who types quickly; then its Enter does nothing.
 */
function takeMarked(event: KeyboardEvent<HTMLInputElement>): void {
  const list = document.getElementById(event.currentTarget.getAttribute('aria-controls') ?? '');
  if (event.key !== 'Enter' || event.nativeEvent.isComposing || !list) return;
  const has_chosen = list.querySelector('[data-combobox-active]') !== null;
  const marked = list.querySelector<HTMLElement>('[data-combobox-selected]');
  const taken = marked ?? (has_chosen ? null : list.querySelector<HTMLElement>('[data-combobox-option]'));
  if (!taken) return;
  event.preventDefault();
  event.stopPropagation();
  taken.click();
}

type Choice = { value: string; label: string };

export function ChoiceFilter(props: {
  label: string;
  value: string | undefined;
  data: readonly Choice[];
  onChange: (value: string | undefined) => void;
  width?: number;
  /** One is always chosen. */
  required?: boolean;
  /** The data is only a part, which the service finds. */
  search?: FoundChoices;
}) {
  const { label, value, data, onChange, width = 170, required = false, search } = props;
  const has_keys = useMediaQuery('(hover: hover)') ?? true;
  return (
    <Select
      {...typed_choice}
      {...(search && searchOf(search))}
      searchable={has_keys || data.length > 8}
      label={label}
      placeholder="All"
      clearable={!required}
      allowDeselect={!required}
      w={{ ...half, xs: width }}
      miw={readable}
      value={value ?? null}
      data={[...data]}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      clearButtonProps={{ 'aria-label': `Clear ${label}` }}
    />
  );
}

/** The properties of a field whose choices the service finds. */
export function searchOf({ filter, onSearchChange, is_searching }: FoundChoices) {
  return { filter, onSearchChange, nothingFoundMessage: is_searching ? 'Searching …' : 'Nothing fits' };
}

/** A UTC day. */
export function DayFilter({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}) {
  return (
    <TextInput
      type="date"
      label={label}
      w={{ ...half, xs: 150 }}
      miw={readable}
      value={value ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}
