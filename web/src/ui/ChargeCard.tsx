import { Alert, Stack, Table, Text } from '@mantine/core';
import type { ChargeView } from '../../../src/dashboard/views/activity.ts';
import { ListTable } from './ListTable.tsx';
import { Money, moneyText } from './Money.tsx';
import { Card } from './Page.tsx';
import { priceText, quantityText } from './price.ts';
import { Time } from './Time.tsx';

/** A charge taken apart: so many units at their price, and what they add up to. */
export function ChargeCard({ charge }: { charge: ChargeView | null }) {
  if (charge === null) return null;
  const { of, rows, rate, rounding, not_charged, charged, adds_up } = charge;
  const word = of === 'hold' ? 'Held' : 'Charged';
  const columns = rate === null ? 3 : 4;
  return (
    <Card title={of === 'hold' ? 'What is held' : 'What was charged'}>
      <Stack gap="xs">
        {!adds_up && (
          <Alert color="yellow" variant="light" title="These rows do not add up">
            The prices have changed since then, and those of then are not stored. The charge is right: it was computed
            at once.
          </Alert>
        )}
        <ListTable
          caption={`${word}, by unit`}
          columns={[
            { name: 'Units', main: true },
            { name: 'Price', align: 'right' },
            ...(rate === null ? [] : [{ name: 'Rate', align: 'right' as const }]),
            { name: 'Amount', align: 'right' },
          ]}
        >
          {rows.map((row) => (
            <Table.Tr key={row.unit}>
              <Table.Td>
                {quantityText(row)}
                {row.measured !== null && (
                  <Text size="xs" c="dimmed">
                    {quantityText({ ...row, quantity: row.measured })} measured, charged as held
                  </Text>
                )}
              </Table.Td>
              <Table.Td ta="right" className="figure">
                × {priceText(row.price)}
                {row.price.per > 1 && ` / ${perShort(row.price.per)}`}
              </Table.Td>
              {rate !== null && (
                <Table.Td ta="right" className="figure">
                  × {rate}
                </Table.Td>
              )}
              <Table.Td ta="right" className="figure">
                {priceText(row.amount)}
              </Table.Td>
            </Table.Tr>
          ))}
          {rounding && <Sum name="Rounded to a millionth" text={signedText(rounding)} columns={columns} />}
          {not_charged && (
            <Sum name="Not charged: more than was held or there" text={signedText(not_charged)} columns={columns} />
          )}
          <Table.Tr fw={650}>
            <Table.Td colSpan={columns - 1}>{word}</Table.Td>
            <Table.Td ta="right">
              <Money cost={charged} exact />
            </Table.Td>
          </Table.Tr>
        </ListTable>
        <PricesOf charge={charge} />
      </Stack>
    </Card>
  );
}

/** Says of which time the prices are. */
function PricesOf({ charge: { rows, rate, charged, priced_at } }: { charge: ChargeView }) {
  return (
    <Text size="xs" c="dimmed">
      {priced_at === null ? (
        'The prices of then are not stored: these are those of today.'
      ) : (
        <>
          Prices as they were <Time at={priced_at} />.
        </>
      )}
      {rate !== null &&
        ` Prices are in ${rows[0]?.price.currency ?? ''}, and the rate of then makes them ${charged.currency}.`}
    </Text>
  );
}

function Sum({ name, text, columns }: { name: string; text: string; columns: number }) {
  return (
    <Table.Tr>
      <Table.Td colSpan={columns - 1}>{name}</Table.Td>
      <Table.Td ta="right" className="figure">
        {text}
      </Table.Td>
    </Table.Tr>
  );
}

/** `1 M`, `1,000`. */
function perShort(per: number): string {
  return per % 1_000_000 === 0 ? `${(per / 1_000_000).toLocaleString('en')} M` : per.toLocaleString('en');
}

function signedText(cost: { amount: string; currency: string }): string {
  return cost.amount.startsWith('-') ? moneyText(cost) : `+${moneyText(cost)}`;
}
