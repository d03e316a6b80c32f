import { Button, Stack } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Page } from '../../../../src/dashboard/views/activity.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages, type Column } from '../../ui/ListTable.tsx';
import { Empty } from '../../ui/states.tsx';
import { momentsOf } from './filters.ts';
import { ModelAndKey } from './ModelAndKey.tsx';
import type { ActivitySearch } from './search.ts';

export type ListProps = { search: ActivitySearch; set: (change: ActivitySearch) => void };

type Props<T> = ListProps & {
  /** Path of the list below the account. */
  path: 'tasks' | 'chats';
  /** The filter that only this list has: how it went. */
  ending: { name: 'status' | 'outcome'; label: string; data: readonly { value: string; label: string }[] };
  caption: string;
  columns: readonly Column[];
  row: (line: T) => ReactNode;
  refreshAfterMs: (pages: readonly Page<T>[]) => number;
  /** Text while there is nothing at all. */
  none: { title: string; text: ReactNode };
};

/** A list of requests, newest first: filters that are kept in the address, rows, and older ones on demand. */
export function ActivityList<T extends { id: string }>(props: Props<T>) {
  const { search, path, ending, caption, columns, row, refreshAfterMs, none } = props;
  const { account, base } = usePlace();
  const { model, key, from, to } = search;
  const chosen = search[ending.name];
  const filter = { [ending.name]: chosen, model, key, ...momentsOf({ from, to }) };
  const query = useInfiniteQuery({
    queryKey: [account.id, path, filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<T>>(`${base}/${path}${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<T>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: ({ state }) => refreshAfterMs(state.data?.pages ?? []),
  });
  const isFiltered = [chosen, model, key, from, to].some((value) => value !== undefined);
  return (
    <Stack>
      <ActivityFilters {...props} isFiltered={isFiltered} />
      <Pages query={query} empty={<Nothing isFiltered={isFiltered} none={none} />}>
        {(lines) => (
          <ListTable caption={caption} columns={columns}>
            {lines.map(row)}
          </ListTable>
        )}
      </Pages>
    </Stack>
  );
}

type FilterProps = ListProps & Pick<Props<unknown>, 'ending'> & { isFiltered: boolean };

function ActivityFilters({ search, set, ending, isFiltered }: FilterProps) {
  const { from, to } = search;
  return (
    <Filters
      isFiltered={isFiltered}
      clear={() => set({ [ending.name]: undefined, model: undefined, key: undefined, from: undefined, to: undefined })}
    >
      <ChoiceFilter
        label={ending.label}
        value={search[ending.name]}
        data={ending.data}
        onChange={(value) => set({ [ending.name]: value })}
        width={140}
      />
      <ModelAndKey search={search} set={set} />
      <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
      <DayFilter label="To (UTC)" value={to} onChange={(value) => set({ to: value })} />
    </Filters>
  );
}

function Nothing({ isFiltered, none: { title, text } }: { isFiltered: boolean } & Pick<Props<unknown>, 'none'>) {
  if (isFiltered) return <Empty title="Nothing matches these filters">Remove one of them.</Empty>;
  return (
    <Empty
      title={title}
      action={
        <Button component={Link} to="/playground">
          Open the playground
        </Button>
      }
    >
      {text}
    </Empty>
  );
}
