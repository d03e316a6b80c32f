import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Failure } from './api.ts';

/**
 * Refusals are final; what cannot be reached is tried again. Who is not signed in any more is led to where one does. A
 * browser that believes to be offline asks all the same: the service may be on its own machine, and what fails is said.
 */
export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: lookForEnd }),
  mutationCache: new MutationCache({ onError: lookForEnd }),
  defaultOptions: {
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      refetchOnReconnect: true,
      staleTime: 10_000,
      retry: (count, error) => count < 2 && error instanceof Failure && (error.status === 0 || error.status >= 500),
    },
  },
});

/** A wrong code is a 401, too: only what needs a session says of which type it is. */
function lookForEnd(error: Error): void {
  const is_over = error instanceof Failure && error.status === 401 && error.type === 'authentication_error';
  if (is_over) queries.setQueryData(['me'], null);
}
