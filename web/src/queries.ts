import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Failure } from './api.ts';
import { isRecord } from './record.ts';

const retry_every_ms = 15_000;

/**
 * Refusals are final; what cannot be reached is tried again, three times at once and then until it can. Who is not signed in any more is led to where one does. A
 * browser that believes to be offline asks all the same: the service may be on its own machine, and what fails is said.
 */
export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: lookForEnd,
    onSuccess: (data, { queryKey }) => {
      if (queryKey[0] === 'me') beginWith(data);
    },
  }),
  mutationCache: new MutationCache({ onError: lookForEnd }),
  defaultOptions: {
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      refetchOnReconnect: true,
      staleTime: 10_000,
      retry: (count, error) => count < 2 && isTemporary(error),
      refetchInterval: ({ state: { error } }) => isTemporary(error) && retry_every_ms,
    },
  },
});

function isTemporary(error: Error | null): boolean {
  return error instanceof Failure && (error.status === 0 || error.status >= 500);
}

let person: unknown;

/** Forgets what was shown to somebody else: another tab may sign in another member of the same account. */
function beginWith(me: unknown): void {
  const id = isRecord(me) && isRecord(me['user']) ? me['user']['id'] : undefined;
  if (id === undefined) return;
  if (person !== undefined && person !== id)
    void queries.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' });
  person = id;
}

/** A wrong code is a 401, too: only what needs a session says of which type it is. */
function lookForEnd(error: Error): void {
  const is_over = error instanceof Failure && error.status === 401 && error.type === 'authentication_error';
  if (is_over) queries.setQueryData(['me'], null);
}
