import { Button, Group, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';
import type { ActivityLine, ActivityPage } from '../../../../src/dashboard/views/activity.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages, type Column } from '../../ui/ListTable.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { columns, type ColumnName } from './columns.tsx';
import { AddFilter } from './AddFilter.tsx';
import { ChosenLabels } from './ChosenLabels.tsx';
import { chosenLabels, filterOf, labelsOf, useChoices, withoutLabels } from './filters.ts';
import { ModelAndKey } from './ModelAndKey.tsx';
import type { ActivitySearch, ActivityTab } from './search.ts';

type Props = {
  tab: ActivityTab;
  search: ActivitySearch;
  set: (change: ActivitySearch) => void;
  chosen: readonly ColumnName[];
  is_live: boolean;
  actions: ReactNode;
};

const captions: Readonly<Record<ActivityTab, string>> = {
  all: 'Generations and chat calls',
  tasks: 'Generations',
  chats: 'Chat calls',
};

/** Without events of the service, rows that move are read again after 2 s, others after 15 s. */
const moving_ms = 2_000;
const resting_ms = 15_000;

/** A list of requests: filters that are kept in the address, rows, and more of them on demand. */
export function ActivityList({ tab, search, set, chosen, is_live, actions }: Props) {
  const { account, base } = usePlace();
  const filter = filterOf(tab, search);
  const query = useInfiniteQuery({
    queryKey: [account.id, 'activity', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<ActivityPage>(`${base}/activity${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: ActivityPage) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: ({ state }) => is_live && (isMoving(state.data?.pages ?? []) ? moving_ms : resting_ms),
  });
  const { sort } = filter;
  const compared = query.data?.pages[0]?.compared;
  return (
    <Stack>
      <ActivityFilters tab={tab} search={search} set={set} />
      <Group justify="flex-end" gap="xs">
        {actions}
      </Group>
      {compared && <Compared compared={compared} />}
      <Pages
        query={query}
        more={sort === 'oldest' ? 'Show newer' : 'Show older'}
        empty={<Nothing tab={tab} isFiltered={isFiltered(tab, search)} words={search.q} />}
      >
        {(lines) => (
          <ListTable caption={`${captions[tab]}, ${orders[sort ?? 'newest']}`} columns={headsOf(chosen, search, set)}>
            {lines.map((line) => (
              <Row key={line.id} line={line} chosen={chosen} />
            ))}
          </ListTable>
        )}
      </Pages>
    </Stack>
  );
}

const orders = { newest: 'newest first', oldest: 'oldest first', cost: 'highest cost first' };

/** The time sorts both ways, the cost from the highest; words are found by time alone. */
function headsOf(chosen: readonly ColumnName[], { q, sort }: ActivitySearch, set: Props['set']): Column[] {
  const by_cost = sort === 'cost' && q === undefined;
  return chosen.map((name): Column => {
    const { cell: _, files: __, ...head } = columns[name];
    if (name === 'time' || name === 'call') {
      const is_ascending = by_cost ? undefined : sort === 'oldest';
      return {
        ...head,
        sort: { is_ascending, toggle: () => set({ sort: sort === undefined ? 'oldest' : undefined }) },
      };
    }
    if (name !== 'cost' || q !== undefined) return head;
    const toggle = () => set({ sort: by_cost ? undefined : 'cost' });
    return { ...head, sort: { is_ascending: by_cost ? false : undefined, toggle } };
  });
}

/** Says what the highest costs are the highest of. */
function Compared({ compared: { from, cut_since } }: { compared: NonNullable<ActivityPage['compared']> }) {
  return (
    <Text size="sm" c="dimmed" role="status">
      The 100 highest costs since <Time at={cut_since ?? from} />
      {cut_since !== null &&
        '. There is more in this time than is compared: what is older is left out. Choose a shorter time'}
      .
    </Text>
  );
}

function isFiltered(tab: ActivityTab, search: ActivitySearch): boolean {
  const { q, status, outcome, model, key, project, from, to } = search;
  const has_filter = [q, status, outcome, model, key, project, from, to].some((value) => value !== undefined);
  return has_filter || chosenLabels(search, labelsOf(tab)).length > 0;
}

function isMoving(pages: readonly ActivityPage[]): boolean {
  return pages[0]?.data.some((line) => line.what === 'task' && line.completed_at === null) ?? false;
}

function Row({ line, chosen }: { line: ActivityLine; chosen: readonly ColumnName[] }) {
  return (
    <Table.Tr>
      {chosen.map((name) => (
        <Fragment key={name}>{columns[name].cell(line)}</Fragment>
      ))}
    </Table.Tr>
  );
}

const statuses = [
  { value: 'queued', label: 'Queued' },
  { value: 'running', label: 'Running' },
  { value: 'succeeded', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
];

const outcomes = [
  { value: 'ok', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
];

const no_filter: ActivitySearch = {
  q: undefined,
  status: undefined,
  outcome: undefined,
  model: undefined,
  key: undefined,
  project: undefined,
  from: undefined,
  to: undefined,
};

function ActivityFilters({ tab, search, set }: Pick<Props, 'tab' | 'search' | 'set'>) {
  const { q, status, outcome, project, from, to } = search;
  const { projects } = useChoices();
  return (
    <Filters isFiltered={isFiltered(tab, search)} clear={() => set({ ...no_filter, ...withoutLabels(search) })}>
      <SearchField
        label="Words"
        placeholder={tab === 'chats' ? 'Labels, errors or an id' : 'Prompts, labels, errors or an id'}
        value={q}
        onChange={(value) => set({ q: value })}
      />
      {tab === 'tasks' ? (
        <ChoiceFilter
          label="Status"
          value={status}
          data={statuses}
          onChange={(value) => set({ status: value })}
          width={140}
        />
      ) : (
        <ChoiceFilter
          label="Outcome"
          value={outcome}
          data={outcomes}
          onChange={(value) => set({ outcome: value })}
          width={140}
        />
      )}
      <ModelAndKey search={search} set={set} />
      {(projects.length > 1 || project !== undefined) && (
        <ChoiceFilter label="Project" value={project} data={projects} onChange={(value) => set({ project: value })} />
      )}
      <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
      <DayFilter label="To (UTC)" value={to} onChange={(value) => set({ to: value })} />
      <AddFilter names={labelsOf(tab)} set={set} />
      <ChosenLabels labels={chosenLabels(search, labelsOf(tab))} set={set} />
    </Filters>
  );
}

function Nothing({
  tab,
  isFiltered: is_filtered,
  words,
}: {
  tab: ActivityTab;
  isFiltered: boolean;
  words: string | undefined;
}) {
  if (is_filtered && words !== undefined && tab !== 'tasks') {
    return (
      <Empty title="Nothing matches these filters">
        Remove one of them. Chat calls are found by their end user, tags, metadata and errors. Their prompts are not
        searched: they are not stored, unless content logging is on, and then they are encrypted.
      </Empty>
    );
  }
  if (is_filtered) return <Empty title="Nothing matches these filters">Remove one of them.</Empty>;
  return (
    <Empty
      title={tab === 'chats' ? 'No chat calls yet' : tab === 'tasks' ? 'No generations yet' : 'Nothing yet'}
      action={
        <Button component={Link} to="/playground">
          Open the playground
        </Button>
      }
    >
      {tab === 'chats' ? (
        <>
          Point an OpenAI-style SDK at <code>/v1</code>, or an Anthropic-style one at this address.
        </>
      ) : (
        'Generations by you or your programs appear here.'
      )}
    </Empty>
  );
}
