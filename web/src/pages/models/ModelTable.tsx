import { Badge, Button, Checkbox, Group, Stack, Table, Text } from '@mantine/core';
import { useState } from 'react';
import type { ModelSpeedView, ModelView } from '../../../../src/dashboard/views/models.ts';
import { Breakable } from '../../ui/Breakable.tsx';
import { Copy } from '../../ui/Copy.tsx';
import { isInPlayground, kindText } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable, type Column } from '../../ui/ListTable.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { priceTexts } from '../../ui/price.ts';
import { sortedBy, type SortValue } from '../../ui/sorting.ts';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { CallIt } from './CallIt.tsx';
import { contextOf, kindPlace, priceRank, slownessOf, speedNote, speedText, successText, tokensText } from './facts.ts';
import { compared_max, sorts, type ModelsSearch } from './search.ts';

type Props = {
  models: ModelView[];
  /** Number of models without filters. */
  all: number;
  speeds: ReadonlyMap<string, ModelSpeedView>;
  compared: readonly string[];
  search: ModelsSearch;
  set: (change: ModelsSearch) => void;
};

/** The models that the filters leave, in the order that the address names. */
export function ModelTable({ models, all, speeds, compared, search, set }: Props) {
  const [called, setCalled] = useState<ModelView>();
  if (models.length === 0) return <Empty title="Nothing matches these filters">Remove one of them.</Empty>;
  const sorted = inOrder(models, speeds, search.sort);
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {models.length === all ? `${all} models` : `${models.length} of ${all} models`}
        </Text>
        {compared.length > 0 && (
          <Group gap="xs">
            <Button variant="subtle" color="gray" size="xs" onClick={() => set({ compare: undefined })}>
              Clear the selection
            </Button>
            <Button size="xs" disabled={compared.length < 2} onClick={() => set({ view: 'compare' })}>
              Compare {compared.length} of {compared_max}
            </Button>
          </Group>
        )}
      </Group>
      <ListTable caption="Models" columns={columnsOf(search, set)}>
        {sorted.map((model) => (
          <ModelRow
            key={model.id}
            model={model}
            speed={speeds.get(model.id)}
            compared={compared}
            set={set}
            call={() => setCalled(model)}
          />
        ))}
      </ListTable>
      {called && (
        <Modal opened onClose={() => setCalled(undefined)} title={`Call ${called.display_name}`} size="lg">
          <CallIt model={called} />
        </Modal>
      )}
    </Stack>
  );
}

type Sort = (typeof sorts)[number];

/** A click sorts by a column, another one turns it round, and a third brings back the catalogue's order. Context begins with the largest. */
function columnsOf({ sort }: ModelsSearch, set: Props['set']): Column[] {
  const sortBy = (name: Sort): NonNullable<Column['sort']> => {
    const first = name === 'context' ? (`-${name}` as const) : name;
    const second = name === 'context' ? name : (`-${name}` as const);
    const is_mine = sort === first || sort === second;
    return {
      is_ascending: is_mine ? sort === name : undefined,
      toggle: () => set({ sort: sort === first ? second : sort === second ? undefined : first }),
    };
  };
  return [
    { name: 'Model', main: true, sort: sortBy('name') },
    { name: 'Kind' },
    { name: 'Price', sort: sortBy('price') },
    { name: 'Context', align: 'right', sort: sortBy('context') },
    { name: 'Speed', align: 'right', sort: sortBy('speed') },
    { name: 'Succeeded', align: 'right' },
    { name: 'Status' },
    { name: 'Actions', hidden: true },
  ];
}

/** Prices and speeds of different kinds are not compared: models stay with their kind. */
function inOrder(
  models: readonly ModelView[],
  speeds: Props['speeds'],
  sort: ModelsSearch['sort'],
): readonly ModelView[] {
  if (sort === undefined) return models;
  const name = sorts.find((each) => sort === each || sort === `-${each}`);
  const values: Record<Sort, (model: ModelView) => SortValue> = {
    name: ({ display_name }) => display_name,
    price: priceRank,
    context: (model) => contextOf(model) ?? null,
    speed: ({ id }) => slownessOf(speeds.get(id)),
  };
  if (name === undefined) return models;
  const sorted = sortedBy(models, values[name], sort === name);
  const keeps_kinds = name === 'price' || name === 'speed';
  return keeps_kinds ? sorted.toSorted((a, b) => kindPlace(a.modality) - kindPlace(b.modality)) : sorted;
}

type RowProps = Pick<Props, 'compared' | 'set'> & {
  model: ModelView;
  speed: ModelSpeedView | undefined;
  call: () => void;
};

function ModelRow({ model, speed, compared, set, call }: RowProps) {
  const { id, display_name, modality, pricing, status, pace } = model;
  return (
    <Table.Tr>
      <Table.Td miw={170}>
        <NameCell model={model} compared={compared} set={set} />
      </Table.Td>
      <Table.Td>
        <Badge variant="default" tt="none" fw={500} miw="max-content">
          {kindText(modality)}
        </Badge>
      </Table.Td>
      <Table.Td miw={150}>
        {priceTexts(pricing).map((text) => (
          <Text key={text} size="sm" className="figure">
            {text}
          </Text>
        ))}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {tokensText(contextOf(model))}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        <Text size="sm" style={{ whiteSpace: 'nowrap' }}>
          {speedText(speed)}
        </Text>
        {speed && (
          <Text size="xs" c="dimmed">
            {speedNote(speed)}
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {successText(pace)}
      </Table.Td>
      <Table.Td>
        <ModelStatus of={status} />
      </Table.Td>
      <Table.Td ta="right">
        <Group gap={4} justify="flex-end">
          {isInPlayground(modality) && (
            <ButtonTo href={playgroundOf(id)} size="xs" variant="light" aria-label={`Try it: ${display_name}`}>
              Try it
            </ButtonTo>
          )}
          <Button size="xs" variant="default" onClick={call} aria-label={`Code: ${display_name}`}>
            Code
          </Button>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function NameCell({
  model: { id, display_name, retires },
  compared,
  set,
}: Pick<RowProps, 'model' | 'compared' | 'set'>) {
  const is_compared = compared.includes(id);
  const others = compared.filter((each) => each !== id);
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <Checkbox
        aria-label={`Compare ${display_name}`}
        mt={4}
        checked={is_compared}
        disabled={!is_compared && compared.length >= compared_max}
        onChange={() => set({ compare: (is_compared ? others : [...compared, id]).join(',') || undefined })}
      />
      <div style={{ minWidth: 0 }}>
        <LinkTo href={`/models/${encodeURI(id)}`} size="sm" fw={600}>
          {display_name}
        </LinkTo>
        <Group gap={2} wrap="nowrap">
          <Text size="xs" c="dimmed" ff="monospace" style={{ overflowWrap: 'break-word' }}>
            <Breakable text={id} />
          </Text>
          <Copy text={id} label={`Copy ${id}`} />
        </Group>
        {retires !== undefined && (
          <Text size="xs" fw={500}>
            Ends on <Time at={`${retires}T00:00:00Z`} />
          </Text>
        )}
      </div>
    </Group>
  );
}

export function playgroundOf(id: string): string {
  return `/playground?model=${encodeURIComponent(id)}`;
}
