import { useMediaQuery } from '@mantine/hooks';
import { Checkbox, NativeSelect, Stack, Table, Text, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { AdminProviders, OfferedModelView } from '../../../../src/dashboard/views/admin-providers.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { priceTexts } from '../../ui/price.ts';
import { needsPrice, noChoice, type Choice } from './offer-choice.ts';
import { pricesWith, typedUnits } from './provider-prices.ts';

type Props = {
  view: AdminProviders;
  models: readonly OfferedModelView[];
  search: string;
  /** The margin of the provider, in percent. */
  margin: string;
  choices: ReadonlyMap<string, Choice>;
  set: (upstream_model: string, choice: Choice) => void;
};

/** More rows make typing slow. */
const rows_max = 100;

const columns = [{ name: 'Model' }, { name: 'Kind' }, { name: 'List price' }, { name: 'For your callers' }];
const narrow_columns = [{ name: 'Model' }];

/** A list of models to tick, with the provider's prices and those for callers. */
export function OfferTable({ view, models, search, margin, choices, set }: Props) {
  const is_narrow = useMediaQuery('(max-width: 40em)') ?? false;
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
        <ListTable caption="Models of the provider" columns={is_narrow ? narrow_columns : columns}>
          {shown.map((model) => (
            <Row
              key={model.upstream_model}
              is_narrow={is_narrow}
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

/** On a phone everything of a model is below its name. */
function Row({ is_narrow, ...props }: RowProps & { is_narrow: boolean }) {
  const { model } = props;
  const is_possible = model.kind !== null;
  const list_price = (
    <PriceLines texts={model.list_price.length === 0 ? ['not in the list'] : priceTexts(model.list_price)} />
  );
  if (is_narrow) {
    return (
      <Table.Tr>
        <Table.Td>
          <Stack gap="xs">
            <Tick {...props} />
            <KindOf {...props} />
            {is_possible && (
              <>
                <Labelled label="List price">{list_price}</Labelled>
                <Labelled label="For your callers">
                  <CallerPrice {...props} />
                </Labelled>
              </>
            )}
          </Stack>
        </Table.Td>
      </Table.Tr>
    );
  }
  return (
    <Table.Tr>
      <Table.Td miw={190} maw={280}>
        <Tick {...props} />
      </Table.Td>
      <Table.Td>
        <KindOf {...props} />
      </Table.Td>
      <Table.Td miw={150}>{list_price}</Table.Td>
      <Table.Td miw={170}>{is_possible && <CallerPrice {...props} />}</Table.Td>
    </Table.Tr>
  );
}

function Labelled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      {children}
    </div>
  );
}

function Tick({ model: { id, name, kind, is_added }, choice, set }: RowProps) {
  return (
    <>
      <Checkbox
        label={<ModelLabel id={id} name={name} />}
        aria-label={id}
        checked={choice.is_ticked}
        disabled={kind === null}
        onChange={({ currentTarget }) => set({ ...choice, is_ticked: currentTarget.checked })}
      />
      {is_added && (
        <Text size="xs" c="dimmed" pl={32}>
          Added; tick it to take its list price again
        </Text>
      )}
    </>
  );
}

function KindOf({ model: { upstream_model, kind, kinds }, choice, set }: RowProps) {
  if (kinds.length === 0) return <Text size="sm">{kind ?? 'cannot be added'}</Text>;
  return (
    <NativeSelect
      size="xs"
      w={112}
      aria-label={`Kind of ${upstream_model}`}
      data={[...kinds]}
      value={choice.kind}
      onChange={({ currentTarget }) => set({ ...choice, kind: currentTarget.value, amounts: {} })}
    />
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
