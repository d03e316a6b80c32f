import { useQuery } from '@tanstack/react-query';
import type { PromptList, PromptView } from '../../../../../src/dashboard/views/playground.ts';
import { api, queryOf } from '../../../api.ts';
import { usePlace } from '../../../session.tsx';

/** Key of everything about prompts of an account. */
export const promptsKey = (account_id: string) => [account_id, 'prompts'];

export function usePrompts() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [...promptsKey(account.id), 'list'],
    queryFn: ({ signal }) => api.get<PromptList>(`${base}/prompts`, { signal }),
    enabled: !account.is_limited,
  });
}

/** A prompt in its latest version, or in another one. */
export function usePrompt(id: string | undefined, version?: number) {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [...promptsKey(account.id), id, version ?? 'latest'],
    queryFn: ({ signal }) =>
      api.get<PromptView>(`${base}/prompts/${encodeURIComponent(id ?? '')}${queryOf({ version })}`, { signal }),
    enabled: id !== undefined && !account.is_limited,
    refetchOnWindowFocus: false, // what is being written stays beside the version that it began with
  });
}
