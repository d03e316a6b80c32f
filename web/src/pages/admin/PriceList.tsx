import { Badge, Group, Stack, Switch, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AdminPrice, AdminPrices } from '../../../../src/dashboard/views/admin.ts';
import type { PriceView } from '../../../../src/dashboard/views/models.ts';
import { api } from '../../api.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { conditionText, isFree, perText, priceText } from '../../ui/price.ts';
import { SearchField } from '../../ui/SearchField.tsx';
import { useSorted } from '../../ui/sorting.ts';
import { Empty, Loaded } from '../../ui/states.tsx';

type Line = { price: AdminPrice; route: AdminPrice['routes'][number] };

/** The price of every model beside the cost of each of its routes, and the margin between them. */
export function PriceList() {
  const [search, setSearch] = useState<string>();
  const [is_thin, setThin] = useState(false);
  const query = useQuery({
    queryKey: ['admin', 'prices'],
    queryFn: ({ signal }) => api.get<AdminPrices>('/dash/admin/prices', { signal }),
  });
  return (
    <Card title="Prices">
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          What callers pay, and what each route costs. They are in medley.yaml; a model that was added here has its
          price under{' '}
          <LinkTo href="/admin/providers" underline="always">
            Providers
          </LinkTo>
          .
        </Text>
        <Group align="flex-end" gap="sm">
          <SearchField label="Search" placeholder="Model, route or provider" value={search} onChange={setSearch} />
          <Switch
            label="Only routes without a margin, or with an unknown cost"
            checked={is_thin}
            color="orange"
            mb={8}
            onChange={({ currentTarget }) => setThin(currentTarget.checked)}
          />
        </Group>
        <Loaded query={query} height={320}>
          {({ data }) => <Lines lines={linesOf(data).filter((line) => fits(line, search, is_thin))} />}
        </Loaded>
      </Stack>
    </Card>
  );
}

function linesOf(prices: readonly AdminPrice[]): Line[] {
  return prices.flatMap((price) => price.routes.map((route) => ({ price, route })));
}

function fits({ price, route }: Line, search: string | undefined, is_thin: boolean): boolean {
  if (is_thin && (isFree([...price.price, ...route.cost]) || (route.margin_percent ?? 0) > 0)) return false;
  const texts = [price.model, price.name, route.id, route.provider];
  return search === undefined || texts.some((text) => text.toLowerCase().includes(search.toLowerCase()));
}

const values = {
  Model: ({ price }: Line) => price.model,
  Margin: ({ route }: Line) => route.margin_percent,
};

function Lines({ lines }: { lines: Line[] }) {
  const { sorted, sortOf } = useSorted(lines, values);
  if (lines.length === 0) return <Empty title="Nothing matches these filters">Change one of them.</Empty>;
  return (
    <ListTable
      caption="Prices and costs of models"
      columns={[
        { name: 'Model', main: true, sort: sortOf('Model') },
        { name: 'Price' },
        { name: 'Route' },
        { name: 'Upstream cost' },
        { name: 'Margin', align: 'right', sort: sortOf('Margin') },
      ]}
    >
      {sorted.map((line) => (
        <Row key={`${line.price.model}#${line.route.id}`} line={line} />
      ))}
    </ListTable>
  );
}

function Row({ line: { price, route } }: { line: Line }) {
  return (
    <Table.Tr>
      <Table.Td maw={230}>
        <LinkTo href={`/models/${price.model}`} size="sm">
          {price.model}
        </LinkTo>
        <Text size="xs" c="dimmed">
          {price.kind}
          {price.price_source !== null && `, price read ${price.price_source.date}`}
        </Text>
      </Table.Td>
      <Table.Td>
        <Amounts rows={price.price} none="free" />
      </Table.Td>
      <Table.Td maw={150}>
        <Text size="sm" truncate title={route.id}>
          {route.id}
        </Text>
        <Text size="xs" c="dimmed">
          {route.provider}
        </Text>
      </Table.Td>
      <Table.Td>
        <Amounts rows={route.cost} none="not configured" />
      </Table.Td>
      <Table.Td ta="right" className="figure">
        <Margin percent={route.margin_percent} />
      </Table.Td>
    </Table.Tr>
  );
}

function Amounts({ rows, none }: { rows: readonly PriceView[]; none: string }) {
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {none}
      </Text>
    );
  }
  return rows.map((row) => {
    const condition = conditionText(row);
    return (
      <Text key={JSON.stringify(row)} size="sm">
        <span className="figure">{priceText(row)}</span> per {perText(row)}
        {condition !== '' && (
          <Text span size="xs" c="dimmed">
            {' '}
            ({condition})
          </Text>
        )}
      </Text>
    );
  });
}

/** Never colour alone: a loss says so. */
function Margin({ percent }: { percent: number | null }) {
  if (percent === null) return '–';
  const text = `${percent.toLocaleString('en', { maximumFractionDigits: 1 }).replace('-', '−')} %`;
  if (percent > 0) return text;
  return (
    <Group gap={6} justify="flex-end" wrap="nowrap">
      {percent < 0 && (
        <Badge variant="light" color="red" tt="none" miw="max-content">
          Loss
        </Badge>
      )}
      {text}
    </Group>
  );
}
