import { Checkbox, NativeSelect, Stack, Table, Text, TextInput } from '@mantine/core';
import type { AdminProviders, OfferedModelView } from '../../../../src/dashboard/views/admin-providers.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { priceTexts } from '../../ui/price.ts';
import { needsPrice, noChoice, type Choice } from './offer-choice.ts';
import { pricesWith, typedUnits } from './provider-prices.ts';

type Props = {
  view: AdminProviders;
  models: readonly OfferedModelView[];
  search: string;
  /** Of the provider, in percent. */
  margin: string;
  choices: ReadonlyMap<string, Choice>;
  set: (upstream_model: string, choice: Choice) => void;
};

/** More rows make typing slow. */
const rows_max = 100;

/** A list of models to tick, with the provider's prices and those for callers. */
export function OfferTable({ view, models, search, margin, choices, set }: Props) {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const matching = models.filter(({ id, upstream_model, name }) => {
    const text = `${id} ${upstream_model} ${name ?? ''}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const ticked = models.filter((model) => choices.get(model.upstream_model)?.is_ticked && !matching.includes(model));
  const shown = [...ticked, ...matching].slice(0, rows_max);
  if (models.length === 0) return <Text c="dimmed">The provider names no models. Type the name of one below.</Text>;
  return (
    <Stack gap="xs">
      <div style={{ maxHeight: '48vh', overflowY: 'auto' }}>
        <ListTable
          caption="Models of the provider"
          columns={[{ name: 'Model' }, { name: 'Kind' }, { name: 'List price' }, { name: 'For your callers' }]}
        >
          {shown.map((model) => (
            <Row
              key={model.upstream_model}
              view={view}
              model={model}
              margin={margin}
              choice={choices.get(model.upstream_model) ?? noChoice(model)}
              set={(choice) => set(model.upstream_model, choice)}
            />
          ))}
        </ListTable>
      </div>
      <Text size="xs" c="dimmed" role="status">
        {matching.length > shown.length
          ? `The first ${shown.length} of ${matching.length}. Search for the others.`
          : `${matching.length === 1 ? '1 model' : `${matching.length} models`}`}
      </Text>
    </Stack>
  );
}

type RowProps = Pick<Props, 'view' | 'margin'> & {
  model: OfferedModelView;
  choice: Choice;
  set: (choice: Choice) => void;
};

function Row({ view, model, margin, choice, set }: RowProps) {
  const { upstream_model, id, name, kind, kinds, list_price, is_added } = model;
  const is_possible = kind !== null;
  return (
    <Table.Tr>
      <Table.Td miw={190} maw={280}>
        <Checkbox
          label={<ModelLabel id={id} name={name} />}
          aria-label={id}
          checked={choice.is_ticked}
          disabled={!is_possible}
          onChange={({ currentTarget }) => set({ ...choice, is_ticked: currentTarget.checked })}
        />
        {is_added && (
          <Text size="xs" c="dimmed" pl={32}>
            Added; tick it to take its list price again
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        {kinds.length > 0 ? (
          <NativeSelect
            size="xs"
            w={112}
            aria-label={`Kind of ${upstream_model}`}
            data={[...kinds]}
            value={choice.kind}
            onChange={({ currentTarget }) => set({ ...choice, kind: currentTarget.value, amounts: {} })}
          />
        ) : (
          <Text size="sm">{kind ?? 'cannot be added'}</Text>
        )}
      </Table.Td>
      <Table.Td miw={150}>
        <PriceLines texts={list_price.length === 0 ? ['not in the list'] : priceTexts(list_price)} />
      </Table.Td>
      <Table.Td miw={170}>
        {is_possible && <CallerPrice view={view} model={model} margin={margin} choice={choice} set={set} />}
      </Table.Td>
    </Table.Tr>
  );
}

function ModelLabel({ id, name }: { id: string; name: string | null }) {
  return (
    <>
      <Text size="sm" fw={600} component="span" style={{ overflowWrap: 'anywhere' }}>
        {id}
      </Text>
      {name !== null && name !== id && (
        <Text size="xs" c="dimmed" component="span" display="block">
          {name}
        </Text>
      )}
    </>
  );
}

function PriceLines({ texts }: { texts: readonly string[] }) {
  return (
    <Stack gap={0}>
      {texts.map((text) => (
        <Text key={text} size="sm" className="figure">
          {text}
        </Text>
      ))}
    </Stack>
  );
}

function CallerPrice({ view, model, margin, choice, set }: RowProps) {
  if (!needsPrice(model, choice, view)) {
    const prices = view.usd_rate === '1' ? pricesWith(model.list_price, margin, view.currency) : undefined;
    return <PriceLines texts={prices ? priceTexts(prices) : [`list price + ${margin} %, in ${view.currency}`]} />;
  }
  if (!choice.is_ticked) return <PriceLines texts={['to be typed']} />;
  return (
    <Stack gap={4}>
      {typedUnits(choice.kind).map(({ unit, label }) => (
        <TextInput
          key={unit}
          size="xs"
          label={`${label}, in ${view.currency}`}
          aria-label={`${label} of ${model.upstream_model}`}
          placeholder="0.00"
          inputMode="decimal"
          autoComplete="off"
          value={choice.amounts[unit] ?? ''}
          onChange={({ currentTarget }) =>
            set({ ...choice, amounts: { ...choice.amounts, [unit]: currentTarget.value } })
          }
        />
      ))}
    </Stack>
  );
}
