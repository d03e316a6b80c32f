import { useQueryClient } from '@tanstack/react-query';
import { useRouter } from '@tanstack/react-router';
import { useState } from 'react';
import { below } from '../../below.ts';
import { enter } from '../../session.tsx';

/** Leads whoever has just signed in to where they wanted to go. Throws where the browser did not keep the session. */
export function useArrive(): () => Promise<void> {
  const queries = useQueryClient();
  const router = useRouter();
  const [page] = useState(requestedPage); // read before the address changes
  return async () => {
    const me = await enter(queries);
    if (me) return router.history.replace(below(page));
    throw new Error('This browser did not keep the session. Allow cookies for this address, then sign in again.');
  };
}

/**
 * Returns the page to go to after signing in: `?next=`, if it is a page of this service. Browsers take
 * `/\host` for another one.
 */
export function requestedPage(): string {
  const next = new URLSearchParams(location.search).get('next');
  if (next === null || !next.startsWith('/') || !URL.canParse(next, location.origin)) return '/';
  const url = new URL(next, location.origin);
  if (url.origin !== location.origin) return '/';
  const is_page = !url.pathname.startsWith('//') && url.pathname !== '/sign-in';
  return is_page ? url.pathname + url.search + url.hash : '/';
}
