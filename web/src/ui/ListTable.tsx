import { Button, Center, ScrollArea, Stack, Table, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { ArrowDownIcon, ArrowUpIcon } from '@heroicons/react/24/outline';
import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './states.tsx';

/** `sort`: the list is sorted by this column, and a click turns it round. */
export type Column = {
  name: string;
  align?: 'right';
  hidden?: boolean;
  sort?: { is_ascending: boolean; toggle: () => void };
};

/** A real table that scrolls sideways by itself when it is wider than the screen. */
export function ListTable({
  caption,
  columns,
  children,
}: {
  caption: string;
  columns: readonly Column[];
  children: ReactNode;
}) {
  return (
    <ScrollArea
      type="auto"
      offsetScrollbars="present"
      viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': caption }}
    >
      <Table
        className="list"
        verticalSpacing="xs"
        horizontalSpacing="sm"
        highlightOnHover
        stickyHeader={false}
        miw={columns.length * 90}
      >
        <caption style={{ position: 'absolute', left: -9999 }}>{caption}</caption>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ name, align, hidden, sort }) => (
              <Table.Th
                key={name}
                scope="col"
                ta={align ?? 'left'}
                style={{ whiteSpace: 'nowrap' }}
                {...(sort && { 'aria-sort': sort.is_ascending ? 'ascending' : 'descending' })}
              >
                {hidden ? <VisuallyHidden>{name}</VisuallyHidden> : sort ? <Sorted name={name} {...sort} /> : name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

function Sorted({ name, is_ascending, toggle }: { name: string } & NonNullable<Column['sort']>) {
  const Icon = is_ascending ? ArrowUpIcon : ArrowDownIcon;
  return (
    <UnstyledButton
      onClick={toggle}
      fz="inherit"
      fw="inherit"
      mih={24}
      style={{ display: 'flex', alignItems: 'center', gap: 4 }}
    >
      {name}
      <Icon width={13} aria-hidden />
    </UnstyledButton>
  );
}

type Pages<T> = { pages: { data: T[]; has_more: boolean }[] };

/** Everything that was loaded of a list, and a button for what comes after it. */
export function Pages<T>({
  query,
  empty,
  more = 'Show older',
  children,
}: {
  query: UseInfiniteQueryResult<Pages<T>>;
  empty: ReactNode;
  /** The words on the button. */
  more?: string;
  children: (rows: T[]) => ReactNode;
}) {
  return (
    <Loaded query={query} height={320}>
      {({ pages }) => {
        const rows = pages.flatMap(({ data }) => data);
        if (rows.length === 0) return empty;
        return (
          <Stack gap="sm">
            {children(rows)}
            {query.hasNextPage && (
              <Center>
                <Button variant="light" onClick={() => void query.fetchNextPage()} loading={query.isFetchingNextPage}>
                  {more}
                </Button>
              </Center>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
