import { Box, Stack, Table, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import type { RefusalsView, RefusedPart } from '../../../../src/dashboard/views/refusals.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { colorAt, rangeText, stepName, stepsOf, type Bar, type Series } from './bars.ts';
import { nextStep, reasonText } from './reasons.ts';
import { StackedBars } from './StackedBars.tsx';

type Props = {
  range: { from: string; to: string };
  only: { model: string | undefined; key: string | undefined; project: string | undefined };
  now_ms: number;
};

/** Requests that were refused before any work, by reason, with what to do. */
export function Refused({ range, only, now_ms }: Props) {
  const { account, base } = usePlace();
  const query = queryOf({ ...range, ...only });
  const refusals = useQuery({
    queryKey: [account.id, 'refusals', query],
    queryFn: ({ signal }) => api.get<RefusalsView>(`${base}/refusals${query}`, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  });
  const box = useRef<HTMLDivElement>(null);
  const is_there = refusals.data !== undefined;
  useEffect(() => {
    if (is_there && window.location.hash === '#refused') box.current?.scrollIntoView();
  }, [is_there]);
  return (
    <Box id="refused" ref={box}>
      <Card title="Refused">
        <Loaded query={refusals} height={120}>
          {(view) =>
            view.total === 0 ? (
              <Text size="sm" c="dimmed">
                Nothing was refused in this period. Calls that the money, a budget, a rule of a key or a limit does not
                allow are counted here, with what to do.
              </Text>
            ) : (
              <Reasons view={view} now_ms={now_ms} />
            )
          }
        </Loaded>
      </Card>
    </Box>
  );
}

function Reasons({ view, now_ms }: { view: RefusalsView; now_ms: number }) {
  const { total, reasons, step } = view;
  const series = useMemo(
    () => reasons.map(({ reason }, index): Series => ({ id: reason, name: reasonText(reason), color: colorAt(index) })),
    [reasons],
  );
  const bars = useMemo(() => barsOf(view, now_ms), [view, now_ms]);
  const [first] = reasons;
  const calls = `${total.toLocaleString('en')} ${total === 1 ? 'call' : 'calls'} refused before any work, ${rangeText(view)}`;
  const most = first ? `; most for this reason: ${reasonText(first.reason)}` : '';
  return (
    <Stack gap="md">
      <StackedBars
        summary={`${calls}${most}.`}
        caption={`Refused calls by ${stepName(step)} and reason`}
        bars={bars}
        series={series}
        textOf={(value) => value.toLocaleString('en')}
        step={step === 'hour' ? 'Hour' : 'Day'}
      />
      <ReasonTable view={view} />
    </Stack>
  );
}

function barsOf({ from, to, step, bars }: RefusalsView, now_ms: number): Bar[] {
  const parts_by_time = new Map(bars.map(({ at, parts }) => [Date.parse(at), parts]));
  const end_ms = Math.min(Date.parse(to), Math.max(now_ms, Date.parse(from)) + 1);
  return stepsOf(Date.parse(from), end_ms, step).map(({ at_ms, ...bar }) => ({
    ...bar,
    values: Object.fromEntries((parts_by_time.get(at_ms) ?? []).map(({ reason, count }) => [reason, count])),
  }));
}

function ReasonTable({ view: { reasons } }: { view: RefusalsView }) {
  return (
    <ListTable
      caption="Refused calls by reason"
      columns={[
        { name: 'Reason' },
        { name: 'Calls', align: 'right' },
        { name: 'Mostly' },
        { name: 'Last hour' },
        { name: 'Next step' },
      ]}
    >
      {reasons.map(({ reason, count, parts, last_at }) => (
        <Table.Tr key={reason}>
          <Table.Th scope="row" role="rowheader" fw={500}>
            {reasonText(reason)}
          </Table.Th>
          <Table.Td ta="right" className="figure">
            {count.toLocaleString('en')}
          </Table.Td>
          <Table.Td miw={180}>
            {parts.map((part) => (
              <Text key={partText(part)} size="sm" c="dimmed">
                {partText(part)}
                {`\u00a0×\u00a0${part.count.toLocaleString('en')}`}
              </Text>
            ))}
          </Table.Td>
          <Table.Td>
            <Time at={last_at} />
          </Table.Td>
          <Table.Td miw={200}>
            <NextStep reason={reason} />
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}

/** `Nightly, acme/small`. */
function partText({ key, budget, model }: RefusedPart): string {
  const names = [budget?.name, key?.name, model].filter((name) => name !== undefined && name !== null);
  return names.length === 0 ? 'several keys' : names.join(', ');
}

function NextStep({ reason }: { reason: RefusalsView['reasons'][number]['reason'] }) {
  const { account } = usePlace();
  const { text, href } = nextStep(reason, account.is_limited);
  if (href === undefined) return <Text size="sm">{text}</Text>;
  return (
    <LinkTo href={href} size="sm">
      {text}
    </LinkTo>
  );
}
