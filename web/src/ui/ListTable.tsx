import { Button, ScrollArea, Stack, Table, Text, UnstyledButton, VisuallyHidden } from '@mantine/core';
import { ArrowDownIcon, ArrowsUpDownIcon, ArrowUpIcon } from '@heroicons/react/24/outline';
import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loaded } from './states.tsx';

export type Column = {
  name: string;
  align?: 'right';
  hidden?: boolean;
  /** A long name over short cells may take two lines. */
  wraps?: boolean;
  /** Its cells are the titles of the cards on a phone. Without one, those of the first column are. */
  main?: boolean;
  /** The list can be sorted by this column; `is_ascending` is undefined while it is sorted by another one. */
  sort?: { is_ascending: boolean | undefined; toggle: () => void };
};

type Props = { caption: string; columns: readonly Column[]; children: ReactNode };

/**
 * A real table that scrolls sideways by itself when it is wider than the screen. On a phone each row is a card (theme.css): a title,
 * then a line per cell with the name of its column. The roles are written out because browsers take them from a table that is laid out as something else.
 */
export function ListTable({ caption, columns, children }: Props) {
  return (
    <ScrollArea
      className="list-frame"
      type="auto"
      offsetScrollbars="present"
      viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': caption }}
    >
      <Table
        className="list"
        role="table"
        verticalSpacing="xs"
        horizontalSpacing="sm"
        highlightOnHover
        stickyHeader={false}
        miw={columns.length * 90}
        style={cardVariables(columns)}
      >
        <caption style={{ position: 'absolute', left: -9999 }}>{caption}</caption>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map((column) => (
              <Head key={column.name} column={column} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">{children}</Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

function Head({ column: { name, align, hidden, wraps, sort } }: { column: Column }) {
  return (
    <Table.Th
      scope="col"
      role="columnheader"
      ta={align ?? 'left'}
      style={{ whiteSpace: wraps ? 'normal' : 'nowrap' }}
      {...(sort && { 'aria-sort': directionOf(sort.is_ascending) })}
    >
      {hidden ? <VisuallyHidden>{name}</VisuallyHidden> : sort ? <Sorted name={name} {...sort} /> : name}
    </Table.Th>
  );
}

/** Names of the columns as style sheets can use them: `--label-2: "Status"`. A title and a cell of buttons need none. */
function cardVariables(columns: readonly Column[]): Record<`--${string}`, string> {
  const title = Math.max(
    0,
    columns.findIndex(({ main }) => main),
  );
  const variables = columns.map(({ name, hidden }, index): Record<`--${string}`, string> => {
    const number = index + 1;
    if (index === title)
      return {
        [`--label-${number}`]: 'none',
        [`--indent-${number}`]: '0px',
        [`--place-${number}`]: '-1',
        [`--weight-${number}`]: '600',
      };
    if (hidden) return { [`--label-${number}`]: 'none', [`--indent-${number}`]: '0px' };
    return { [`--label-${number}`]: JSON.stringify(name) };
  });
  return Object.assign({}, ...variables);
}

function directionOf(is_ascending: boolean | undefined): 'ascending' | 'descending' | 'none' {
  if (is_ascending === undefined) return 'none';
  return is_ascending ? 'ascending' : 'descending';
}

function Sorted({ name, is_ascending, toggle }: { name: string } & NonNullable<Column['sort']>) {
  const Icon = is_ascending === undefined ? ArrowsUpDownIcon : is_ascending ? ArrowUpIcon : ArrowDownIcon;
  return (
    <UnstyledButton onClick={toggle} fz="inherit" fw="inherit" className="sorting">
      {name}
      <Icon width={13} aria-hidden {...(is_ascending === undefined && { opacity: 0.5 })} />
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
              <Stack align="center" gap="xs">
                <Button variant="light" onClick={() => void query.fetchNextPage()} loading={query.isFetchingNextPage}>
                  {more}
                </Button>
                {query.isFetchNextPageError && (
                  <Text size="sm" role="alert">
                    {query.error.message}
                  </Text>
                )}
              </Stack>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}
