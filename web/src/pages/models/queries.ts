import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type {
  ModelSpeedView,
  ModelView,
  PriceChangeView,
  UnitCostView,
} from '../../../../src/dashboard/views/models.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';

export function useModels() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'models'],
    queryFn: async ({ signal }) => (await api.get<{ data: ModelView[] }>(`${base}/models`, { signal })).data,
    staleTime: 30_000,
  });
}

export function useModel(id: string) {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'model', id],
    queryFn: ({ signal }) => api.get<ModelView>(`${base}/models/${encodeURI(id)}`, { signal }),
    staleTime: 30_000,
  });
}

/** Speeds of models by their ids; empty until they are here. */
export function useSpeeds(): ReadonlyMap<string, ModelSpeedView> {
  const { account, base } = usePlace();
  const { data } = useQuery({
    queryKey: [account.id, 'model-speeds'],
    queryFn: async ({ signal }) => (await api.get<{ data: ModelSpeedView[] }>(`${base}/model-speeds`, { signal })).data,
    staleTime: 60_000,
  });
  return useMemo(() => new Map(data?.map((speed) => [speed.model, speed])), [data]);
}

export function usePriceChanges() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'price-changes'],
    queryFn: async ({ signal }) =>
      (await api.get<{ data: PriceChangeView[] }>(`${base}/price-changes`, { signal })).data,
    staleTime: 60_000,
  });
}

export type Quantities = {
  units: Readonly<Record<string, string>>;
  input: Readonly<Record<string, string | number | boolean>>;
};

/** Costs of so many units of these models, by the prices of the service. */
export function useUnitCosts(models: readonly string[], { units, input }: Quantities) {
  const { account, base } = usePlace();
  const question = queryOf({ models: models.join(), units: JSON.stringify(units), input: JSON.stringify(input) });
  return useQuery({
    queryKey: [account.id, 'model-costs', question],
    queryFn: async ({ signal }) =>
      (await api.get<{ data: UnitCostView[] }>(`${base}/model-costs${question}`, { signal })).data,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}
