import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { below } from '../../below.ts';
import { usePlace } from '../../session.tsx';
import { oneAtATime } from './one-at-a-time.ts';

const again_after_ms = 10_000;

/** A person may ask the dashboard for 600 things a minute. With this, live rows take 75 of them, however many pages the list has. */
const pause_of_page_ms = 800;

/**
 * Reads the shown list again whenever the account's tasks or calls have changed; for a member of projects, those of their
 * projects. Pages that nobody sees do not listen; an event comes with the connection when they are seen again. Where the
 * service cannot be listened to, the list's own interval is left.
 */
export function useLive(is_on: boolean): void {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  useEffect(() => {
    if (!is_on) return;
    const queryKey = [account.id, 'activity'];
    const pages = () =>
      queries
        .getQueriesData<{ pages: unknown[] }>({ queryKey, type: 'active' })
        .reduce((sum, [, data]) => sum + (data?.pages.length ?? 0), 0);
    const refresh = oneAtATime(
      () => queries.refetchQueries({ queryKey, type: 'active' }, { cancelRefetch: false }),
      () => pause_of_page_ms * Math.max(1, pages()),
    );
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const listen = () => {
      clearTimeout(timer);
      source?.close();
      if (document.hidden) return;
      const opened = new EventSource(below(`${base}/activity/events`));
      opened.addEventListener('changed', refresh);
      opened.addEventListener('error', () => {
        // A connection that was lost comes back by itself; a refusal does not.
        if (opened.readyState === EventSource.CLOSED) timer = setTimeout(listen, again_after_ms);
      });
      source = opened;
    };
    listen();
    document.addEventListener('visibilitychange', listen);
    return () => {
      document.removeEventListener('visibilitychange', listen);
      clearTimeout(timer);
      source?.close();
    };
  }, [account.id, base, is_on, queries]);
}
