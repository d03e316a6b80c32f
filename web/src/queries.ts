import { QueryCache, QueryClient } from '@tanstack/react-query';
import { Failure } from './api.ts';

/** Refusals are final; what cannot be reached is tried again. Who is not signed in any more is led to where one does. */
export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      if (error instanceof Failure && error.status === 401) queries.setQueryData(['me'], null);
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      retry: (count, error) => count < 2 && error instanceof Failure && (error.status === 0 || error.status >= 500),
    },
  },
});
