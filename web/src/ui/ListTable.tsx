import { Button, Center, ScrollArea, Stack, Table, VisuallyHidden } from '@mantine/core';
import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './states.tsx';

export type Column = { name: string; align?: 'right'; hidden?: boolean };

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
            {columns.map(({ name, align, hidden }) => (
              <Table.Th key={name} scope="col" ta={align ?? 'left'} style={{ whiteSpace: 'nowrap' }}>
                {hidden ? <VisuallyHidden>{name}</VisuallyHidden> : name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

type Pages<T> = { pages: { data: T[]; has_more: boolean }[] };

/** Everything that was loaded of a list, and a button for what comes after it. */
export function Pages<T>({
  query,
  empty,
  children,
}: {
  query: UseInfiniteQueryResult<Pages<T>>;
  empty: ReactNode;
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
                  Show older
                </Button>
              </Center>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
