import { Select, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminAccountNames } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { typed_choice } from '../../ui/Filters.tsx';

type Props = { value: string | undefined; onChange: (account_id: string | undefined) => void };

/** An account by its name: the service finds the names that fit. An id can be pasted, too. */
export function AccountFilter({ value, onChange }: Props) {
  const [typed, setTyped] = useState('');
  const [search] = useDebouncedValue(typed, 200);
  const fitting = useNames(search);
  const chosen = useNames(value);
  const names = new Map(fitting.map(({ id, name }) => [id, name]));
  if (value !== undefined) names.set(value, chosen.find(({ id }) => id === value)?.name ?? value);
  return (
    <Select
      {...typed_choice}
      label="Account"
      placeholder="All"
      clearable
      allowDeselect={false}
      w={{ base: '100%', xs: 260 }}
      data={[...names].map(([id, name]) => ({ value: id, label: name }))}
      filter={({ options }) => options}
      renderOption={({ option }) => (
        <div>
          <Text size="sm">{option.label}</Text>
          <Text size="xs" c="dimmed" ff="monospace">
            {option.value}
          </Text>
        </div>
      )}
      value={value ?? null}
      onSearchChange={setTyped}
      onChange={(id) => onChange(id ?? undefined)}
      clearButtonProps={{ 'aria-label': 'Clear Account' }}
    />
  );
}

/** Accounts that a text fits, by a part of their names or by their ids. */
function useNames(search: string | undefined) {
  const { data } = useQuery({
    queryKey: ['admin', 'account-names', search],
    queryFn: ({ signal }) => api.get<AdminAccountNames>(`/dash/admin/account-names${queryOf({ search })}`, { signal }),
    enabled: search !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  return data?.data ?? [];
}
