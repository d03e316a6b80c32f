import { useQuery } from '@tanstack/react-query';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { api } from '../../api.ts';
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
