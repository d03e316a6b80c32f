import { Anchor, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { Page as ListPage } from '../../../../src/dashboard/views/activity.ts';
import type { AdminAudit } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { Filters } from '../../ui/Filters.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { AccountFilter } from './AccountFilter.tsx';
import { FileButton } from './FileButton.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import type { AuditSearch } from './search.ts';

const route = getRouteApi('/signed-in/operating/admin/audit');

/** The audit log of all accounts. */
export function Audit() {
  const { account, action, entry } = route.useSearch();
  const filter = { account, action, entry };
  const navigate = useNavigate();
  const set = (change: AuditSearch) =>
    void navigate({ to: '/admin/audit', search: (now) => ({ ...now, ...change }), replace: true });
  const query = useInfiniteQuery({
    queryKey: ['admin', 'audit', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<ListPage<AdminAudit>>(`/dash/admin/audit${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: ListPage<AdminAudit>) => (page.has_more ? page.data.at(-1)?.id : undefined),
  });
  const isFiltered = [account, action, entry].some((value) => value !== undefined);
  return (
    <Page
      title="Audit log"
      about="Changes by people and commands, newest first. Entries are never changed or deleted."
      actions={<FileButton href={`/dash/admin/audit.csv${queryOf(filter)}`} />}
    >
      <Filters isFiltered={isFiltered} clear={() => set({ account: undefined, action: undefined, entry: undefined })}>
        <AccountFilter value={account} onChange={(id) => set({ account: id })} />
        <SearchField
          label="Action"
          placeholder="account.credit"
          value={action}
          onChange={(text) => set({ action: text })}
          width={200}
        />
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
        {(entries) => <AuditTable entries={entries} />}
      </Pages>
    </Page>
  );
}

function AuditTable({ entries }: { entries: AdminAudit[] }) {
  return (
    <ListTable
      caption="Audit log, newest first"
      columns={[
        { name: 'Time' },
        { name: 'Actor' },
        { name: 'Action', main: true },
        { name: 'Account' },
        { name: 'Target' },
        { name: 'Details' },
      ]}
    >
      {entries.map((entry) => (
        <Row key={entry.id} entry={entry} />
      ))}
    </ListTable>
  );
}

function Row({ entry }: { entry: AdminAudit }) {
  const { at, actor, action, account_id, account_name, subject, details, address } = entry;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={at} ago />
        </Text>
      </Table.Td>
      <Table.Td maw={170}>
        <Text size="sm" truncate title={actor}>
          {actor}
        </Text>
        {address !== null && (
          <Text size="xs" c="dimmed" truncate>
            from {address}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <LinkTo href={`/admin/audit?action=${encodeURIComponent(action)}`} size="sm">
          {action}
        </LinkTo>
      </Table.Td>
      <Table.Td maw={130}>
        {account_id === null ? (
          '–'
        ) : (
          <Anchor
            component={Link}
            to={`/admin/accounts/${account_id}`}
            size="sm"
            truncate
            display="block"
            title={account_id}
          >
            {account_name ?? account_id}
          </Anchor>
        )}
      </Table.Td>
      <Table.Td maw={130}>
        <Text size="sm" truncate title={subject ?? ''}>
          {subject === null || subject === account_id ? '–' : subject}
        </Text>
      </Table.Td>
      <Table.Td miw={220} maw={360}>
        {details === null || Object.keys(details).length === 0 ? (
          '–'
        ) : (
          <Text size="xs" style={{ overflowWrap: 'anywhere' }}>
            {detailsText(details)}
          </Text>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** `amount: 10.000000, reason: Paid by transfer`. */
function detailsText(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(
      ([name, value]) => `${name.replaceAll('_', ' ')}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    .join(', ');
}
