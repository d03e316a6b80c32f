import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { SearchHit, SearchView } from '../../../src/dashboard/views/search.ts';
import { api, queryOf } from '../api.ts';
import { useSession, type Session } from '../session.tsx';
import { operating, pagesFor } from './pages.ts';

/** One line of the search: where it leads, or which account it changes to. */
export type Entry = { group: string; title: string; detail: string } & (
  | { href: string; is_document?: true }
  | { account_id: string }
);

const groups: Record<SearchHit['kind'], string> = {
  task: 'Generations',
  chat: 'Chat calls',
  key: 'API keys',
  delivery: 'Webhooks',
  model: 'Models',
  account: 'Accounts of the service',
};

function hrefOf({ kind, id }: SearchHit): string {
  switch (kind) {
    case 'task':
      return `/tasks/${id}`;
    case 'chat':
      return `/chats/${id}`;
    case 'delivery':
      return `/webhooks/${id}`;
    case 'account':
      return `/admin/accounts/${id}`;
    case 'model':
      return `/models/${id.split('/').map(encodeURIComponent).join('/')}`;
    case 'key':
      return `/keys?search=${id}&state=all`;
  }
}

const whole_key = /^mdl_[0-9A-Za-z]{36}$/;

/** Returns what is asked for: of a whole key its last four characters, since a secret leaves no page. */
export function askedFor(text: string): string {
  const trimmed = text.trim().slice(0, 200);
  return whole_key.test(trimmed) ? trimmed.slice(-4) : trimmed;
}

/**
 * Returns the lines of the search for a text: pages at once, then what the service finds. `is_complete` is false while
 * that is on its way.
 */
export function useFound(text: string): { entries: Entry[]; is_complete: boolean; problem: string | undefined } {
  const { me, account } = useSession();
  const mine = useHits(account && `/dash/accounts/${account.id}/search`, text);
  const all = useHits(me.user.is_operator ? '/dash/admin/search' : undefined, text);
  const hits = [...(mine.data?.data ?? []), ...(all.data?.data ?? [])];
  const entries = [...pagesLike(text, account, me.user.is_operator), ...useOwnAccounts(text)];
  const error = mine.error ?? all.error;
  const partial = mine.data?.is_partial === true ? 'Generations were left out: to search them takes too long now.' : '';
  return {
    entries: [...entries, ...hits.map((hit) => ({ ...hit, group: groups[hit.kind], href: hrefOf(hit) }))],
    is_complete: !mine.isFetching && !all.isFetching,
    problem: error?.message ?? (partial || undefined),
  };
}

function useHits(path: string | undefined, text: string) {
  const q = askedFor(text);
  const enabled = path !== undefined && q !== '';
  const query = useQuery({
    queryKey: ['search', path, q],
    queryFn: ({ signal }) => api.get<SearchView>(`${path}${queryOf({ q })}`, { signal }),
    enabled,
    staleTime: 5_000,
    placeholderData: keepPreviousData,
  });
  return enabled ? query : { data: undefined, error: null, isFetching: false };
}

function useOwnAccounts(text: string): Entry[] {
  const { me, account } = useSession();
  const part = text.trim().toLowerCase();
  if (part === '') return [];
  return me.accounts
    .filter(({ id, name }) => id !== account?.id && (name.toLowerCase().includes(part) || id === part))
    .map(({ id, name }) => ({ group: 'Your accounts', title: name, detail: `Change to it, ${id}`, account_id: id }));
}

const operator_group = 'Operator';

function pagesLike(text: string, account: Session['account'], is_operator: boolean): Entry[] {
  const part = text.trim().toLowerCase();
  const pages: Entry[] = [
    ...pagesFor(account).map(({ to, label }) => ({ group: 'Pages', title: label, detail: '', href: to })),
    { group: 'Pages', title: 'Guide', detail: '', href: '/guide', is_document: true },
    { group: 'Pages', title: 'API reference', detail: '', href: '/guide/reference', is_document: true },
    ...(is_operator ? operating : []).map(({ to, label }) => ({
      group: operator_group,
      title: label,
      detail: '',
      href: to,
    })),
  ];
  const placeOf = ({ title }: Entry) => title.toLowerCase().indexOf(part);
  const alike = pages.filter((page) => placeOf(page) !== -1);
  const groupPlace = ({ group }: Entry) => (group === operator_group ? 1 : 0);
  // Those that begin with it come first in their group.
  return alike.toSorted((a, b) => groupPlace(a) - groupPlace(b) || Number(placeOf(a) > 0) - Number(placeOf(b) > 0));
}
