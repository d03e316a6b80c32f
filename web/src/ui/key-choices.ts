import type { ComboboxItem, OptionsFilter } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyChoices } from '../../../src/dashboard/views/keys.ts';
import { api, queryOf } from '../api.ts';
import { usePlace } from '../session.tsx';

/** Choices of which the page has only some: the service finds others as one types. */
export type FoundChoices = {
  data: ComboboxItem[];
  filter: OptionsFilter;
  onSearchChange: (text: string) => void;
  has_more: boolean;
  is_searching: boolean;
};

/** So many chosen keys are named; the service takes no more. */
const named_max = 100;

/**
 * Keys to choose from: the newest, and as one types those that fit, by their name, the end of the key or its id. Chosen ones are
 * among them with their names. `state`: only keys that work.
 */
export function useKeyChoices(chosen: readonly string[], state?: 'active'): FoundChoices {
  const { account, base } = usePlace();
  const [typed, setTyped] = useState('');
  const [settled] = useDebouncedValue(typed, 200);
  const named = chosen.slice(0, named_max).toSorted().join(',');
  const [chosen_labels, setChosenLabels] = useState<readonly string[]>([]);
  const isOfChosen = (text: string) => chosen_labels.includes(text); // the field shows it, and nobody typed it
  const search = isOfChosen(settled) ? '' : settled.trim();
  const query = useQuery({
    queryKey: [account.id, 'choices', 'keys', search, state, named],
    queryFn: ({ signal }) =>
      api.get<KeyChoices>(`${base}/choices/keys${queryOf({ search, state, chosen: named })}`, { signal }),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
  const { data: fitting = [], chosen: names = [], has_more = false } = query.data ?? {};
  const labels = new Map([...names, ...fitting].map(({ id, name }) => [id, name]));
  const extra = chosen.filter((id) => !fitting.some((each) => each.id === id) && query.data !== undefined);
  const data = [...fitting, ...extra.map((id) => ({ id, name: labels.get(id) ?? id }))];
  const named_now = chosen.flatMap((id) => labels.get(id) ?? []);
  if (named_now.join('\n') !== chosen_labels.join('\n')) setChosenLabels(named_now);
  const text = isOfChosen(typed) ? '' : typed.trim();
  const is_current = text === search && !query.isPlaceholderData;
  const fits = new Set(
    fitting.filter(({ name }) => is_current || name.toLowerCase().includes(text.toLowerCase())).map(({ id }) => id),
  );
  return {
    data: data.map(({ id, name }) => ({ value: id, label: name })),
    filter: ({ options }) => options.filter((option) => 'value' in option && fits.has(option.value)),
    onSearchChange: setTyped,
    has_more,
    is_searching: !is_current,
  };
}
