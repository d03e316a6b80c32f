import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { Page as ListPage } from '../../../../src/dashboard/views/activity.ts';
import type { AuditLineView } from '../../../../src/dashboard/views/settings.ts';
import { api, queryOf } from '../../api.ts';
import { AuditTable } from '../../ui/AuditTable.tsx';
import { DayFilter, Filters } from '../../ui/Filters.tsx';
import { Pages } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';
import { FileButton } from '../../ui/FileButton.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { AccountFilter } from './AccountFilter.tsx';
import type { AuditSearch } from './search.ts';

const route = getRouteApi('/signed-in/operating/admin/audit');

/** The audit log of all accounts. */
export function Audit() {
  const { account, action, entry, from, to } = route.useSearch();
  const filter = { account, action, entry, from, to };
  const navigate = useNavigate();
  const set = (change: AuditSearch) =>
    void navigate({ to: '/admin/audit', search: (now) => ({ ...now, ...change }), replace: true });
  const query = useInfiniteQuery({
    queryKey: ['admin', 'audit', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<ListPage<AuditLineView>>(`/dash/admin/audit${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: ListPage<AuditLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
  });
  const isFiltered = [account, action, entry, from, to].some((value) => value !== undefined);
  return (
    <Page
      title="Audit log"
      about="Changes by people and commands, newest first. Entries are never changed or deleted."
      actions={
        <>
          <FileButton href={`/dash/admin/audit.csv${queryOf(filter)}`} />
          <FileButton href={`/dash/admin/audit.jsonl${queryOf(filter)}`} label="JSONL" />
        </>
      }
    >
      <Filters
        isFiltered={isFiltered}
        clear={() => set({ account: undefined, action: undefined, entry: undefined, from: undefined, to: undefined })}
      >
        <AccountFilter value={account} onChange={(id) => set({ account: id })} />
        <SearchField
          label="Action"
          placeholder="account.credit"
          value={action}
          onChange={(text) => set({ action: text })}
          width={200}
        />
        <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
        <DayFilter label="Before (UTC)" value={to} onChange={(value) => set({ to: value })} />
      </Filters>
      <Pages
        query={query}
        empty={
          isFiltered ? (
            <Empty title="Nothing matches these filters">Remove one of them, or enter a full action name.</Empty>
          ) : (
            <Empty title="No entries yet">Changes that people make, here or with commands, are recorded here.</Empty>
          )
        }
      >
        {(entries) => <AuditTable entries={entries} of_all />}
      </Pages>
    </Page>
  );
}
