import { Button, Group, Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';

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

type Choice = { value: string; label: string };

export function ChoiceFilter(props: {
  label: string;
  value: string | undefined;
  data: readonly Choice[];
  onChange: (value: string | undefined) => void;
  width?: number;
  /** One is always chosen. */
  required?: boolean;
}) {
  const { label, value, data, onChange, width = 170, required = false } = props;
  return (
    <Select
      label={label}
      placeholder="All"
      clearable={!required}
      allowDeselect={!required}
      searchable={data.length > 8}
      w={{ base: '100%', xs: width }}
      value={value ?? null}
      data={[...data]}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      clearButtonProps={{ 'aria-label': `Clear ${label}` }}
    />
  );
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
      w={{ base: '100%', xs: 150 }}
      value={value ?? ''}
      onChange={(event) => onChange(event.currentTarget.value || undefined)}
    />
  );
}
