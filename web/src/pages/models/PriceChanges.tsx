import { Table, Text } from '@mantine/core';
import type { PriceChangeView, PriceView } from '../../../../src/dashboard/views/models.ts';
import { day_form } from '../../ui/dates.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { conditionText, perText, priceText } from '../../ui/price.ts';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { usePriceChanges } from './queries.ts';

/** Prices that change on a day, and models that end on one: what is to come, and what was. */
export function PriceChanges() {
  const query = usePriceChanges();
  return (
    <Loaded query={query} height={320}>
      {(changes) =>
        changes.length === 0 ? (
          <Empty title="No changes of prices">
            Prices with a date in the configuration appear here, before and after that day.
          </Empty>
        ) : (
          <ListTable
            caption="Changes of prices, the latest first"
            columns={[{ name: 'Day (UTC)' }, { name: 'Model', main: true }, { name: 'Change' }, { name: 'State' }]}
          >
            {changes.map((change) => (
              <Row key={JSON.stringify(change)} change={change} />
            ))}
          </ListTable>
        )
      }
    </Loaded>
  );
}

function Row({ change }: { change: PriceChangeView }) {
  const { model, display_name, on, is_coming } = change;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>{day_form.format(new Date(`${on}T00:00:00Z`))}</Table.Td>
      <Table.Td>
        <LinkTo href={`/models/${encodeURI(model)}`} size="sm" fw={600}>
          {display_name}
        </LinkTo>
      </Table.Td>
      <Table.Td>
        {change.is === 'end' ? (
          <Text size="sm">Ends{change.replaced_by !== null && `; use ${change.replaced_by} instead`}</Text>
        ) : (
          <PriceChange price={change.price} before={change.before} />
        )}
      </Table.Td>
      <Table.Td>
        <Status of={is_coming ? 'pending' : 'good'} label={is_coming ? 'Coming' : 'In force'} />
      </Table.Td>
    </Table.Tr>
  );
}

function PriceChange({ price, before }: { price: PriceView; before: PriceView | null }) {
  const condition = conditionText(price);
  return (
    <>
      <Text size="sm" className="figure">
        {before && `${priceText(before)}${before.per === price.per ? '' : ` per ${perText(before)}`} → `}
        {priceText(price)} per {perText(price)}
        {before && ` (${percentText(before, price)})`}
      </Text>
      {condition !== '' && (
        <Text size="xs" c="dimmed">
          {condition}
        </Text>
      )}
    </>
  );
}

/** `−50 %`, for people; the amounts beside it are the exact ones. */
function percentText(before: PriceView, after: PriceView): string {
  const [old_price, new_price] = [Number(before.amount) / before.per, Number(after.amount) / after.per];
  if (old_price === 0) return 'no longer free';
  const percent = Math.round((new_price / old_price - 1) * 100);
  return `${percent > 0 ? '+' : percent < 0 ? '−' : '±'}${Math.abs(percent)} %`;
}
