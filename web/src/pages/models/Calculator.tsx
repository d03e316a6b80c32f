import { Badge, Group, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import type { ModelView, PriceView } from '../../../../src/dashboard/views/models.ts';
import { Money } from '../../ui/Money.tsx';
import { unitLabel } from '../../ui/price.ts';
import { titleOf } from '../../ui/schema.ts';
import { Failed } from '../../ui/states.tsx';
import { useUnitCosts, type Quantities } from './queries.ts';

type Value = string | number | boolean;

/** Quantities to begin with: those of a usual call. */
const usual: Readonly<Record<string, string>> = {
  request: '1',
  image: '1',
  megapixel: '1',
  second: '5',
  minute: '1',
  character: '1000',
  input_token: '1000',
  output_token: '500',
};

const quantity_form = /^\d{1,12}(\.\d{1,6})?$/;

/** Asks the service for the cost of so many tokens, images or seconds: of one model, or of several beside each other. */
export function Calculator({ models }: { models: readonly ModelView[] }) {
  const rows = models.flatMap(({ pricing }) => pricing);
  const units = [...new Set(rows.map(({ unit }) => unit))];
  const choices = choicesOf(rows);
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const [chosen, setChosen] = useState<Readonly<Record<string, Value>>>({});
  const quantityOf = (unit: string) => typed[unit] ?? usual[unit] ?? '0';
  const wrong = units.filter((unit) => !quantity_form.test(quantityOf(unit)));
  const fine = units.filter((unit) => !wrong.includes(unit));
  const quantities: Quantities = {
    units: Object.fromEntries(fine.map((unit) => [unit, quantityOf(unit)])),
    input: Object.fromEntries(choices.map(({ field, values }) => [field, chosen[field] ?? values[0] ?? ''])),
  };
  return (
    <Stack gap="sm">
      <SimpleGrid cols={{ base: 2, sm: 3 }} spacing="sm" verticalSpacing="sm">
        {units.map((unit) => (
          <TextInput
            key={unit}
            label={unitLabel(unit)}
            inputMode="decimal"
            autoComplete="off"
            value={quantityOf(unit)}
            error={wrong.includes(unit) && 'A number, such as 1000'}
            onChange={({ currentTarget: { value } }) => setTyped((before) => ({ ...before, [unit]: value }))}
          />
        ))}
        {choices.map(({ field, values }) => (
          <Select
            key={field}
            label={titleOf({ name: field, schema: {} })}
            allowDeselect={false}
            data={values.map(String)}
            value={String(quantities.input[field])}
            onChange={(text) =>
              setChosen((before) => ({ ...before, [field]: values.find((value) => String(value) === text) ?? '' }))
            }
          />
        ))}
      </SimpleGrid>
      <Costs models={models} quantities={quantities} />
    </Stack>
  );
}

/** Inputs on which prices depend, with the values that have a price of their own. */
function choicesOf(rows: readonly PriceView[]): { field: string; values: Value[] }[] {
  const fields = new Map<string, Set<Value>>();
  for (const { when = {} } of rows) {
    for (const [field, condition] of Object.entries(when)) {
      const values = fields.get(field) ?? new Set();
      fields.set(field, values);
      for (const value of [condition].flat()) {
        if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') values.add(value);
      }
    }
  }
  return [...fields].map(([field, values]) => ({ field, values: [...values] }));
}

function Costs({ models, quantities }: { models: readonly ModelView[]; quantities: Quantities }) {
  const [settled] = useDebouncedValue(quantities, 250);
  const query = useUnitCosts(
    models.map(({ id }) => id),
    settled,
  );
  if (query.isError) return <Failed error={query.error} />;
  const costs = new Map(query.data?.map((cost) => [cost.model, cost]));
  const comparable = query.data?.filter(({ unpriced }) => unpriced.length === 0) ?? [];
  const least = Math.min(...comparable.map(({ cost }) => Number(cost.exact)));
  return (
    <Stack gap="xs" role="status" aria-label="Costs" aria-busy={query.isFetching}>
      {models.map(({ id, display_name }) => {
        const cost = costs.get(id);
        return (
          <Group key={id} justify="space-between" gap="xs">
            <Text size="sm">{models.length === 1 ? 'Together' : display_name}</Text>
            <Group gap="xs">
              {cost && comparable.length > 1 && comparable.includes(cost) && Number(cost.cost.exact) === least && (
                <Badge variant="light" color="teal" tt="none">
                  cheapest
                </Badge>
              )}
              <Text fw={650}>{cost ? <Money cost={cost.cost} exact /> : '…'}</Text>
            </Group>
            {cost && cost.unpriced.length > 0 && (
              <Text size="xs" c="dimmed" w="100%">
                Without {cost.unpriced.map((unit) => unitLabel(unit).toLowerCase()).join(', ')}: it has no price for
                that.
              </Text>
            )}
          </Group>
        );
      })}
      <Text size="xs" c="dimmed">
        Computed by the service, with the prices that hold today.
      </Text>
    </Stack>
  );
}
