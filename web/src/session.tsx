import { useQuery } from '@tanstack/react-query';
import { createContext, useContext, useMemo, useState, type ReactNode } from 'react';
import type { Me, MyAccount } from '../../src/dashboard/views/common.ts';
import { api, Failure } from './api.ts';

export type { Me, MyAccount };

/** Who has signed in; null for nobody. */
export function useMe() {
  return useQuery({
    queryKey: ['me'],
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<Me | null> => {
      try {
        return await api.get<Me>('/dash/me', { signal });
      } catch (error) {
        if (error instanceof Failure && error.status === 401) return null;
        throw error;
      }
    },
  });
}

/** The account that is looked at, and what this person may do with it. */
export type Place = {
  me: Me;
  account: MyAccount;
  /** The beginning of all its paths: `/dash/accounts/acct_…`. */
  base: string;
  may(right: MyAccount['rights'][number]): boolean;
  choose(account_id: string): void;
};

const PlaceContext = createContext<Place | undefined>(undefined);

const remembered = 'medley.account';

/** Each tab looks at one account; a new tab begins with the last one. */
function rememberedAccount(): string | null {
  return sessionStorage.getItem(remembered) ?? localStorage.getItem(remembered);
}

export function PlaceProvider({ me, empty, children }: { me: Me; empty: ReactNode; children: ReactNode }) {
  const [chosen, setChosen] = useState(rememberedAccount);
  const account = me.accounts.find(({ id }) => id === chosen) ?? me.accounts[0];
  const place = useMemo(
    () =>
      account && {
        me,
        account,
        base: `/dash/accounts/${account.id}`,
        may: (right: MyAccount['rights'][number]) => account.rights.includes(right),
        choose: (id: string) => {
          sessionStorage.setItem(remembered, id);
          localStorage.setItem(remembered, id);
          setChosen(id);
        },
      },
    [me, account],
  );
  if (!place) return empty;
  return <PlaceContext value={place}>{children}</PlaceContext>;
}

export function usePlace(): Place {
  const place = useContext(PlaceContext);
  if (!place) throw new Error('there is no account here');
  return place;
}
