import { Group, MultiSelect, Stack, Tabs } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { kindText } from '../../ui/kinds.ts';
import { ChoiceFilter, Filters, typed_choice } from '../../ui/Filters.tsx';
import { ButtonTo } from '../../ui/LinkTo.tsx';
import { Page } from '../../ui/Page.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Compare } from './Compare.tsx';
import { capabilityText, contextOf, tokensText } from './facts.ts';
import { ModelTable } from './ModelTable.tsx';
import { PriceChanges } from './PriceChanges.tsx';
import { useModels, useSpeeds } from './queries.ts';
import { compared_max, kinds, partsOf, type ModelsSearch } from './search.ts';

const route = getRouteApi('/signed-in/models/');

/** Everything that can be run here, what it costs and how fast it is. */
export function Models() {
  const { view } = route.useSearch();
  const navigate = route.useNavigate();
  const show = (tab: string | null) =>
    void navigate({ search: tab === 'changes' ? { view: 'changes' } : {}, replace: true });
  return (
    <Page
      title="Models"
      about="The models of this service, their prices, and your results of the last seven days. Select up to four to compare them."
      actions={
        <ButtonTo variant="default" href="/status">
          Status
        </ButtonTo>
      }
    >
      <Tabs value={view === 'changes' ? 'changes' : 'models'} onChange={show} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="models">Models</Tabs.Tab>
          <Tabs.Tab value="changes">Price changes</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="models">
          <Offer />
        </Tabs.Panel>
        <Tabs.Panel value="changes">
          <PriceChanges />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function useSearch(): [ModelsSearch, (change: ModelsSearch) => void] {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return [search, (change) => void navigate({ search: (before) => ({ ...before, ...change }), replace: true })];
}

/** The list with its filters, or the models that are compared. */
function Offer() {
  const [search, set] = useSearch();
  const query = useModels();
  const speeds = useSpeeds();
  const compared = partsOf(search.compare).slice(0, compared_max);
  return (
    <Loaded query={query} height={480}>
      {(models) =>
        search.view === 'compare' ? (
          <Compare
            models={compared.flatMap((id) => models.find((model) => model.id === id) ?? [])}
            speeds={speeds}
            back={() => set({ view: undefined })}
          />
        ) : (
          <Stack gap="md">
            <ModelFilters models={models} />
            {models.length === 0 ? (
              <NoModels />
            ) : (
              <ModelTable
                models={models.filter((model) => fits(model, search))}
                all={models.length}
                speeds={speeds}
                compared={compared}
                search={search}
                set={set}
              />
            )}
          </Stack>
        )
      }
    </Loaded>
  );
}

const contexts = [8_000, 32_000, 128_000, 200_000, 1_000_000].map((tokens) => ({
  value: String(tokens),
  label: `${tokensText(tokens)} tokens`,
}));

const no_filter: ModelsSearch = { q: undefined, kind: undefined, can: undefined, context: undefined };

function ModelFilters({ models }: { models: readonly ModelView[] }) {
  const [search, set] = useSearch();
  const { q, kind, can, context } = search;
  const capabilities = [...new Set(models.flatMap((model) => model.capabilities))];
  const isFiltered = [q, kind, can, context].some((value) => value !== undefined);
  return (
    <Filters isFiltered={isFiltered} clear={() => set(no_filter)}>
      <SearchField
        label="Search"
        placeholder="Name or id"
        value={q}
        onChange={(text) => set({ q: text })}
        width={220}
      />
      <ChoiceFilter
        label="Kind"
        value={kind}
        data={kinds.map((each) => ({ value: each, label: kindText(each) }))}
        onChange={(value) => set({ kind: kinds.find((one) => one === value) })}
        width={150}
      />
      <MultiSelect
        {...typed_choice}
        label="Capabilities"
        placeholder={can === undefined ? 'Any' : ''}
        w={{ base: '100%', xs: 260 }}
        data={capabilities.map((value) => ({ value, label: capabilityText(value) }))}
        value={partsOf(can)}
        onChange={(chosen) => set({ can: chosen.join(',') || undefined })}
        clearable
        clearButtonProps={{ 'aria-label': 'Clear Capabilities' }}
      />
      <ChoiceFilter
        label="Context of at least"
        value={context === undefined ? undefined : String(context)}
        data={contexts}
        onChange={(value) => set({ context: value === undefined ? undefined : Number(value) })}
        width={170}
      />
    </Filters>
  );
}

function NoModels() {
  const { me } = usePlace();
  return (
    <Group grow>
      <Empty title="No models yet">
        {me.user.is_operator
          ? 'Set a provider’s key in the environment, or add models to medley.yaml. The command medley models shows which key adds which models.'
          : 'The operator has not configured any.'}
      </Empty>
    </Group>
  );
}

function fits(model: ModelView, { q, kind, can, context }: ModelsSearch): boolean {
  if (kind !== undefined && model.modality !== kind) return false;
  if (!partsOf(can).every((capability) => model.capabilities.includes(capability))) return false;
  if (context !== undefined && (contextOf(model) ?? 0) < context) return false;
  const text = `${model.id} ${model.display_name} ${model.description}`.toLowerCase();
  return (q ?? '')
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
