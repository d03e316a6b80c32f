import { Group, Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Page as ListPage } from '../../../../src/dashboard/views/activity.ts';
import type { AuditLineView } from '../../../../src/dashboard/views/settings.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { AuditTable } from '../../ui/AuditTable.tsx';
import { FileButton } from '../../ui/FileButton.tsx';
import { DayFilter, Filters } from '../../ui/Filters.tsx';
import { Pages } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';

type Span = { from?: string | undefined; to?: string | undefined };

/** Everything that people and commands have changed in this account, for its owners. */
export function AuditLog() {
  const { account, base } = usePlace();
  const [span, setSpan] = useState<Span>({});
  const query = useInfiniteQuery({
    queryKey: [account.id, 'audit', span],
    queryFn: ({ pageParam, signal }) =>
      api.get<ListPage<AuditLineView>>(`${base}/audit${queryOf({ ...span, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: ListPage<AuditLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
  });
  const isFiltered = span.from !== undefined || span.to !== undefined;
  return (
    <Card
      title={`Audit log of ${account.name}`}
      side={
        <Group gap="xs">
          <FileButton href={`${base}/audit.csv${queryOf(span)}`} />
          <FileButton href={`${base}/audit.jsonl${queryOf(span)}`} label="JSONL" />
        </Group>
      }
    >
      <Stack>
        <Text size="sm">Changes by people and commands, newest first. The files have what the days leave.</Text>
        <Filters isFiltered={isFiltered} clear={() => setSpan({})}>
          <DayFilter label="From (UTC)" value={span.from} onChange={(from) => setSpan({ ...span, from })} />
          <DayFilter label="Before (UTC)" value={span.to} onChange={(to) => setSpan({ ...span, to })} />
        </Filters>
        <Pages
          query={query}
          empty={
            <Empty title={isFiltered ? 'Nothing in these days' : 'No entries yet'}>
              {isFiltered ? 'Choose other days.' : 'Changes of keys, members and settings are recorded here.'}
            </Empty>
          }
        >
          {(entries) => <AuditTable entries={entries} />}
        </Pages>
      </Stack>
    </Card>
  );
}
