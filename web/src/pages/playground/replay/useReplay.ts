import { useQuery } from '@tanstack/react-query';
import type { ChatContentView, ChatView } from '../../../../../src/dashboard/views/activity.ts';
import { api } from '../../../api.ts';
import { usePlace } from '../../../session.tsx';
import { replayOf } from './replay.ts';

/** The stored call with this id. It is read once: each read is in the audit log. */
export function useReplay(id: string | undefined) {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'replay', id],
    queryFn: async () => {
      const path = `${base}/chats/${encodeURIComponent(id ?? '')}`;
      const call = await api.get<ChatView>(path);
      return replayOf(call, await api.post<ChatContentView>(`${path}/content`));
    },
    enabled: id !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });
}
