import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { createContext, useContext, useMemo, useState, type ReactNode } from 'react';
import type { Me, MyAccount } from '../../src/dashboard/views/common.ts';
import { api, Failure, queryOf } from './api.ts';

export type { Me, MyAccount };

/** The signed-in person; null for nobody. */
const me_query = queryOptions({
  queryKey: ['me'],
  queryFn: async ({ signal }): Promise<Me | null> => {
    try {
      return await api.get<Me>(`/dash/me${queryOf({ view: viewedAccount() })}`, { signal });
    } catch (error) {
      if (error instanceof Failure && error.status === 401) return null;
      throw error;
    }
  },
});

export function useMe() {
  return useQuery({ ...me_query, staleTime: 60_000 });
}

/**
 * Begins anew as whoever has just signed in. Nothing stays of what was shown to somebody else, nor of an answer that
 * was under way before: it may say that nobody is here. Null where the browser did not keep the session.
 */
export async function enter(queries: QueryClient): Promise<Me | null> {
  forgetView();
  await queries.cancelQueries();
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'me' });
  return queries.fetchQuery({ ...me_query, staleTime: 0 });
}

/** Returns the address by which somebody signs in; undefined while they have none of their own. */
export function addressOf({ email }: Me['user']): string | undefined {
  return email.endsWith('@medley.invalid') ? undefined : email;
}

/** The person and the account they look at, if there is one: an operator may belong to none. */
export type Session = {
  me: Me;
  account: MyAccount | undefined;
  choose(account_id: string): void;
  /** Looks at the account of somebody else, for operators; it is written down in that account. */
  look(account_id: string): Promise<void>;
  /** Ends that. */
  leave(): Promise<void>;
};

/** The account that is looked at, and what this person may do with it. */
export type Place = Session & {
  account: MyAccount;
  /** The beginning of all its paths: `/dash/accounts/acct_…`. */
  base: string;
  may(right: MyAccount['rights'][number]): boolean;
};

const SessionContext = createContext<Session | undefined>(undefined);

const remembered = 'medley.account';
/** The account that an operator looks at, in this tab alone. */
const viewed = 'medley.view';

function viewedAccount(): string | undefined {
  return sessionStorage.getItem(viewed) ?? undefined;
}

/** Forgets the account that is looked at, so that the next person who signs in does not see it. */
export function forgetView(): void {
  if (viewedAccount() === undefined) return;
  sessionStorage.removeItem(viewed);
  sessionStorage.removeItem(remembered);
}

/** Each tab looks at one account; a new tab begins with the last one. */
function rememberedAccount(): string | null {
  return sessionStorage.getItem(remembered) ?? localStorage.getItem(remembered);
}

export function SessionProvider({ me, children }: { me: Me; children: ReactNode }) {
  const [chosen, setChosen] = useState(rememberedAccount);
  const account = me.accounts.find(({ id }) => id === chosen) ?? me.accounts[0];
  const queries = useQueryClient();
  const session = useMemo(
    (): Session => ({
      me,
      account,
      choose: (id) => {
        sessionStorage.setItem(remembered, id);
        if (id !== viewedAccount()) localStorage.setItem(remembered, id);
        setChosen(id);
      },
      look: async (id) => {
        await api.post(`/dash/admin/accounts/${id}/view`);
        sessionStorage.setItem(viewed, id);
        sessionStorage.setItem(remembered, id);
        await queries.refetchQueries({ queryKey: ['me'] });
        setChosen(id);
      },
      leave: async () => {
        forgetView();
        setChosen(rememberedAccount());
        await queries.refetchQueries({ queryKey: ['me'] });
      },
    }),
    [me, account, queries],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** Returns the session, with or without an account. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('nobody has signed in here');
  return session;
}

/** Returns the session of a page that has an account. */
export function usePlace(): Place {
  const session = useSession();
  const { account } = session;
  if (!account) throw new Error('there is no account here');
  return {
    ...session,
    account,
    base: `/dash/accounts/${account.id}`,
    may: (right) => account.rights.includes(right),
  };
}
