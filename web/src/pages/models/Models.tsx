import { Badge, Group, Stack, Table, Text, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { ModelView, PaceView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { Copy } from '../../ui/Copy.tsx';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { isInPlayground } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { Page } from '../../ui/Page.tsx';
import { priceTexts } from '../../ui/price.ts';
import { Empty, Loaded } from '../../ui/states.tsx';
import { durationText, Time } from '../../ui/Time.tsx';
import { useModels } from './queries.ts';
import { kinds, type ModelsSearch } from './search.ts';

const route = getRouteApi('/signed-in/models/');

/** Everything that can be run here, and what it costs. */
export function Models() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (change: ModelsSearch) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const query = useModels();
  const isFiltered = search.q !== undefined || search.kind !== undefined;
  return (
    <Page title="Models" about="The models of this service, their prices, and your results of the last seven days.">
      <Filters isFiltered={isFiltered} clear={() => set({ q: undefined, kind: undefined })}>
        <SearchBox value={search.q} onChange={(q) => set({ q })} />
        <ChoiceFilter
          label="Kind"
          value={search.kind}
          data={kinds.map((kind) => ({ value: kind, label: kindText(kind) }))}
          onChange={(kind) => set({ kind: kinds.find((one) => one === kind) })}
          width={150}
        />
      </Filters>
      <Loaded query={query} height={420}>
        {(models) => <ModelList models={models.filter((model) => fits(model, search))} all={models.length} />}
      </Loaded>
    </Page>
  );
}

/** The address follows when one pauses: it is no history of every letter. */
function SearchBox({ value, onChange }: { value: string | undefined; onChange: (value: string | undefined) => void }) {
  const [text, setText] = useState(value ?? '');
  useEffect(() => setText((before) => (before.trim() === (value ?? '') ? before : (value ?? ''))), [value]);
  const tell = useDebouncedCallback((next: string) => onChange(next.trim() || undefined), 200);
  return (
    <TextInput
      label="Search"
      placeholder="Name or id"
      type="search"
      w={{ base: '100%', xs: 240 }}
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        tell(currentTarget.value);
      }}
    />
  );
}

export function kindText(kind: string): string {
  return kind.slice(0, 1).toUpperCase() + kind.slice(1);
}

function fits({ id, display_name, description, modality }: ModelView, { q, kind }: ModelsSearch): boolean {
  if (kind !== undefined && modality !== kind) return false;
  const text = `${id} ${display_name} ${description}`.toLowerCase();
  return (q ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function ModelList({ models, all }: { models: ModelView[]; all: number }) {
  const { me } = usePlace();
  if (all === 0) {
    return (
      <Empty title="No models yet">
        {me.user.is_operator
          ? 'Set a provider’s key in the environment, or add models to medley.yaml. The command medley models shows which key adds which models.'
          : 'The operator has not configured any.'}
      </Empty>
    );
  }
  if (models.length === 0) return <Empty title="Nothing matches these filters">Remove one of them.</Empty>;
  return (
    <Stack gap="xs">
      <Text size="sm" c="dimmed" role="status">
        {models.length === all ? `${all} models` : `${models.length} of ${all} models`}
      </Text>
      <ListTable
        caption="Models"
        columns={[
          { name: 'Model' },
          { name: 'Kind' },
          { name: 'Price' },
          { name: 'Succeeded', align: 'right' },
          { name: 'Median time', align: 'right' },
          { name: 'Status' },
          { name: 'Try it', hidden: true },
        ]}
      >
        {models.map((model) => (
          <ModelRow key={model.id} model={model} />
        ))}
      </ListTable>
    </Stack>
  );
}

function ModelRow({ model }: { model: ModelView }) {
  const { id, display_name, modality, pricing, status, pace, retires } = model;
  return (
    <Table.Tr>
      <Table.Td miw={240}>
        <LinkTo href={`/models/${encodeURI(id)}`} size="sm" fw={600}>
          {display_name}
        </LinkTo>
        <Group gap={2} wrap="nowrap">
          <Text size="xs" c="dimmed" ff="monospace">
            {id}
          </Text>
          <Copy text={id} label={`Copy ${id}`} />
        </Group>
        {retires !== undefined && (
          <Text size="xs" fw={500}>
            Ends on <Time at={`${retires}T00:00:00Z`} />
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Badge variant="default" tt="none" fw={500} miw="max-content">
          {kindText(modality)}
        </Badge>
      </Table.Td>
      <Table.Td miw={190}>
        {priceTexts(pricing).map((text) => (
          <Text key={text} size="sm" className="figure">
            {text}
          </Text>
        ))}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {successText(pace)}
      </Table.Td>
      <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
        {pace?.p50_ms == null ? '–' : durationText(pace.p50_ms)}
      </Table.Td>
      <Table.Td>
        <ModelStatus of={status} />
      </Table.Td>
      <Table.Td ta="right">
        {isInPlayground(modality) && (
          <ButtonTo href={playgroundOf(id)} size="xs" variant="light" aria-label={`Try it: ${display_name}`}>
            Try it
          </ButtonTo>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

export function playgroundOf(id: string): string {
  return `/playground?model=${encodeURIComponent(id)}`;
}

/** `98.5 %`; a dash where nothing has ended. */
export function successText(pace: PaceView | null): string {
  if (!pace || pace.ended === 0) return '–';
  const percent = (pace.succeeded / pace.ended) * 100;
  return `${percent % 100 === 0 ? percent : percent.toFixed(1)} %`;
}
