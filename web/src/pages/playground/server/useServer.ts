import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';
import { usePlace } from '../../../session.tsx';
import { synchroniserOf, type Synchroniser } from './synchroniser.ts';

/** The person in the account: their conversations are shown to nobody else. */
export function useOwner(): string {
  const { me, account } = usePlace();
  return `${me.user.id} ${account.id}`;
}

/** The key of the list of conversations of one owner. */
export const conversations_key = (owner: string) => ['conversations', owner];

const server_key = (owner: string) => ['server-conversations', owner];

export function useSynchroniser(): Synchroniser {
  const owner = useOwner();
  const { base, may, me } = usePlace();
  return synchroniserOf(owner, { base, person: me.user.id, is_allowed: may('run') });
}

/** Reads the person's choice and the server's list when the page opens, and when somebody comes back to it. */
export function useServer() {
  const owner = useOwner();
  const { may } = usePlace();
  const synchroniser = useSynchroniser();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: server_key(owner),
    queryFn: () => synchroniser.refresh(),
    enabled: may('run'),
    refetchOnWindowFocus: 'always',
  });
  const sending = useSyncExternalStore(synchroniser.listen, () => synchroniser.sending);
  useEffect(
    () =>
      synchroniser.listen(() => {
        queries.setQueryData(server_key(owner), synchroniser.view());
        void queries.invalidateQueries({ queryKey: conversations_key(owner) });
      }),
    [synchroniser, queries, owner],
  );
  return { view: query.data, error: query.error, sending, synchroniser };
}
