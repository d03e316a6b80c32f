import { MultiSelect, SimpleGrid, Stack, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';
import { api, isRecord } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { exactText } from '../../ui/Money.tsx';
import { problemText } from './form/problems.ts';
import { Result } from './Result.tsx';

type Input = Record<string, unknown>;

const beside_max = 2;

/** The part of an input that this model has fields for: other models of a kind have other fields beside the prompt. */
function inputFor({ input_schema }: ModelView, input: Input): Input {
  const { properties } = input_schema;
  const fields = isRecord(properties) ? properties : {};
  return Object.fromEntries(Object.entries(input).filter(([name]) => Object.hasOwn(fields, name)));
}

type ChooserProps = {
  model: ModelView;
  others: readonly ModelView[];
  beside: readonly ModelView[];
  setBeside: (ids: string[]) => void;
  input: Input;
};

/** Other models that run with the same input, with the hold of each. */
export function BesideChooser({ model, others, beside, setBeside, input }: ChooserProps) {
  const estimates = useEstimates(beside, input);
  const choices = others.filter(({ id, modality }) => id !== model.id && modality === model.modality);
  if (choices.length === 0) return null;
  return (
    <Stack gap={4}>
      <MultiSelect
        label="Compare"
        description={`A run starts these models, too: up to ${beside_max}, with the fields that they have.`}
        searchable
        maxValues={beside_max}
        value={beside.map(({ id }) => id)}
        onChange={setBeside}
        data={choices.map(({ id, display_name }) => ({ value: id, label: display_name }))}
        placeholder={beside.length === 0 ? 'Compare with…' : ''}
        nothingFoundMessage="No other model of this kind"
      />
      <Text size="sm" c="dimmed" role="status">
        {beside.map(({ id, display_name }, index) => (
          <span key={id} style={{ display: 'block' }}>
            {display_name}: {estimateText(estimates[index])}
          </span>
        ))}
      </Text>
    </Stack>
  );
}

function estimateText(view: EstimateView | undefined): string {
  if (!view) return '…';
  if (view.ok) return `holds ${exactText(view.estimated_cost)}`;
  return view.errors[0] ? problemText(view.errors[0]) : 'its input has errors';
}

/** The holds of several models for one input: requested when typing pauses. */
function useEstimates(models: readonly ModelView[], input: Input): (EstimateView | undefined)[] {
  const { account, base, may } = usePlace();
  const [settled] = useDebouncedValue(input, 300);
  const queries = useQueries({
    queries: models.map((model) => {
      const body = { model: model.id, input: inputFor(model, settled) };
      return {
        queryKey: [account.id, 'estimate', '/estimate', JSON.stringify(body)],
        queryFn: ({ signal }: { signal: AbortSignal }) => api.post<EstimateView>(`${base}/estimate`, body, { signal }),
        enabled: may('run'),
        staleTime: 5_000,
        gcTime: 30_000,
      };
    }),
  });
  return queries.map(({ data }) => data);
}

/** A run of another model: its task, or the reason why there is none. */
type BesideRun = { id: string } | { error: string };

/** Starts the other models, each for itself: one that fails does not hold back the others. */
export function useBesideRuns(beside: readonly ModelView[], input: Input) {
  const { base } = usePlace();
  const [runs, setRuns] = useState<Readonly<Record<string, BesideRun>>>({});
  const startOne = async (model: ModelView): Promise<[string, BesideRun]> => {
    try {
      const body = { model: model.id, input: inputFor(model, input) };
      return [model.id, await api.post<{ id: string }>(`${base}/generate`, body)];
    } catch (error) {
      return [model.id, { error: error instanceof Error ? error.message : String(error) }];
    }
  };
  const start = async () => setRuns(Object.fromEntries(await Promise.all(beside.map(startOne))));
  return { runs, start };
}

type ResultsProps = { beside: readonly ModelView[]; runs: Readonly<Record<string, BesideRun>> };

/** Results of the other models, each with its cost and its time. */
export function BesideResults({ beside, runs }: ResultsProps) {
  if (beside.length === 0) return null;
  return (
    <SimpleGrid cols={{ base: 1, lg: beside.length }}>
      {beside.map((model) => {
        const run = runs[model.id];
        return (
          <section key={model.id} aria-label={model.display_name}>
            <Text fw={600} mb={4}>
              {model.display_name}
            </Text>
            {run && 'error' in run ? (
              <Text role="alert" size="sm" c="var(--mantine-color-error)">
                {run.error}
              </Text>
            ) : (
              <Result id={run?.id} model={model} />
            )}
          </section>
        );
      })}
    </SimpleGrid>
  );
}
