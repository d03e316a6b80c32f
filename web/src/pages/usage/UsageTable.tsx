import { Table, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { UsageGrouping, UsageSum, UsageView } from '../../../../src/dashboard/views/usage.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { quantityText } from '../../ui/price.ts';
import { useSorted, type SortValue } from '../../ui/sorting.ts';
import { sortedUnits } from '../../ui/units.ts';
import { activityAddress } from '../activity/address.ts';
import { pairName, type ActivitySearch } from '../activity/search.ts';
import { groupName, groupPhrase, isPair, nameOf } from './groups.ts';
import type { UsageSearch } from './search.ts';

type UsageRow = UsageView['rows'][number];
type Props = { view: UsageView; search: UsageSearch };

const values: Readonly<Record<string, (row: UsageRow) => SortValue>> = {
  Cost: ({ cost }) => Number(cost.exact),
  'Period before': ({ before }) => Number(before?.cost.exact ?? 0),
  Change: ({ cost, before }) => growth(Number(cost.exact), Number(before?.cost.exact ?? 0)),
  Charges: ({ count }) => count,
};

/** New ones have grown the most. */
function growth(now: number, before: number): number {
  if (now === before) return 1;
  return before === 0 ? Infinity : now / before;
}

/** Sums of the range by group, beside those of the range before; the total stays at the end. */
export function UsageTable({ view, search }: Props) {
  const { rows, total, total_before, group } = view;
  const { sorted, sortOf } = useSorted(rows, { ...values, Name: (row) => nameOf(row, group) });
  return (
    <ListTable
      caption={`Sums by ${groupPhrase(group)}`}
      columns={[
        { name: groupName(group), sort: sortOf('Name') },
        ...Object.keys(values).map((name) => ({ name, align: 'right' as const, sort: sortOf(name) })),
        { name: 'Units' },
      ]}
    >
      {sorted.map(({ id, name, before, ...used }) => (
        <Row
          key={id}
          name={<RowName view={view} search={search} id={id} name={name} />}
          used={used}
          before={before ?? undefined}
        />
      ))}
      <Row name="Total" used={total} before={total_before} is_total />
    </ListTable>
  );
}

/** To the generations and calls of it, with the period and the other filters of the page. */
function RowName({ view, search, id, name }: Props & { id: string; name: string }) {
  const filter = id === '' ? undefined : filterOf(view.group, id);
  if (!filter) return nameOf({ id, name }, view.group);
  const { model, key, project } = search;
  const days = { from: view.from.slice(0, 10), to: new Date(Date.parse(view.to) - 1).toISOString().slice(0, 10) };
  const href = activityAddress({ model, key, project, ...filter, ...days });
  if (href === undefined) return name;
  return (
    <LinkTo href={href} size="sm">
      {name}
    </LinkTo>
  );
}

/** Returns the filter of the page Activity for a group; undefined for a group that it has no filter for. */
function filterOf(group: UsageGrouping, id: string): ActivitySearch | undefined {
  if (group === 'kind') return undefined;
  const parameter = isPair(group) ? pairName(group.slice('metadata.'.length)) : group;
  return parameter && { [parameter]: id };
}

type RowProps = { name: ReactNode; used: UsageSum; before: UsageSum | undefined; is_total?: boolean };

function Row({ name, used, before, is_total = false }: RowProps) {
  const weight = is_total ? 650 : 400;
  const zero = { ...used.cost, amount: '0.00', exact: '0.000000' };
  return (
    <Table.Tr fw={weight}>
      <Table.Th scope="row" role="rowheader" fw={weight}>
        {name}
      </Table.Th>
      <Table.Td ta="right">
        <Money cost={used.cost} exact="column" />
      </Table.Td>
      <Table.Td ta="right">
        <Money cost={before?.cost ?? zero} exact="column" />
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {changeText(used.cost.exact, before?.cost.exact ?? '0')}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {used.count.toLocaleString('en')}
      </Table.Td>
      <Table.Td miw={220}>
        <Text size="sm" {...(!is_total && { c: 'dimmed' })}>
          {sortedUnits(used.units)
            .map((unit) => quantityText({ unit, quantity: used.units[unit] ?? '0' }))
            .join(', ') || '–'}
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}

/** `+12 %`, for people; the numbers beside it are the exact ones. */
export function changeText(now: string, before: string): string {
  const [a, b] = [Number(now), Number(before)];
  if (a === b) return '±0 %';
  if (b === 0) return 'new';
  const percent = Math.round(((a - b) / b) * 100);
  if (percent > 999) return `×${Math.round(a / b).toLocaleString('en')}`;
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)} %`;
}
