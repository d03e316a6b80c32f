import { Alert } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { notifyManager, useQueryClient, type Query, type QueryClient } from '@tanstack/react-query';
import { useCallback, useSyncExternalStore } from 'react';
import { Failure } from '../api.ts';
import { Reason } from './states.tsx';
import { Time } from './Time.tsx';

/** Says that something on the page could be read once and now cannot: what is shown is of before. */
export function NotUpToDate() {
  const queries = useQueryClient();
  const oldest = useOldestFailing(queries);
  if (!oldest) return null;
  const { dataUpdatedAt, error } = oldest.state;
  return (
    <Alert
      role="status"
      color="yellow"
      variant="light"
      icon={<ExclamationTriangleIcon aria-hidden />}
      title={
        <>
          Not up to date since <Time at={new Date(dataUpdatedAt).toISOString()} />
        </>
      }
    >
      {error && <Reason error={error} retry={() => void queries.refetchQueries({ predicate: isFailing })} />}
    </Alert>
  );
}

/** Returns what has not been read for the longest time, of all that is in sight and failed when it was read again. */
function useOldestFailing(queries: QueryClient): Query | undefined {
  const cache = queries.getQueryCache();
  return useSyncExternalStore(
    useCallback((changed) => cache.subscribe(notifyManager.batchCalls(changed)), [cache]),
    () =>
      cache
        .findAll({ predicate: isFailing })
        .toSorted((one, other) => one.state.dataUpdatedAt - other.state.dataUpdatedAt)[0],
  );
}

/** Whoever has signed out is led to where one signs in instead, and a button for more says by itself what failed. */
function isFailing(query: Query): boolean {
  const { status, data, error, fetchMeta } = query.state;
  if (fetchMeta?.fetchMore) return false;
  const is_signed_out = error instanceof Failure && error.status === 401;
  return status === 'error' && data !== undefined && !is_signed_out && query.isActive();
}
