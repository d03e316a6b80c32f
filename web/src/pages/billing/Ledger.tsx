import { Anchor, Button, Stack, Table, Text } from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { useInfiniteQuery } from '@tanstack/react-query';
import { below } from '../../below.ts';
import type { Page } from '../../../../src/dashboard/views/activity.ts';
import type { LedgerLine, LedgerType } from '../../../../src/dashboard/views/billing.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { momentsOf } from '../activity/filters.ts';
import type { BillingSearch } from './search.ts';

const names: Record<LedgerType, string> = {
  topup: 'Top-up',
  hold: 'Hold',
  release: 'Release',
  charge: 'Charge',
  adjustment: 'Adjustment',
};

const types = Object.entries(names).map(([value, label]) => ({ value, label }));

const columns = [
  { name: 'Time' },
  { name: 'Type' },
  { name: 'Amount', align: 'right' }, // as far to the left as a phone shows
  { name: 'For' },
  { name: 'Balance after', align: 'right' },
  { name: 'Available after', align: 'right' },
] as const;

type Props = { search: BillingSearch; set: (change: BillingSearch) => void };

/** Every movement of money, newest first, with what caused it. */
export function Ledger({ search, set }: Props) {
  const { account, base } = usePlace();
  const { type, from, to } = search;
  const filter = { type, ...momentsOf({ from, to }) };
  const query = useInfiniteQuery({
    queryKey: [account.id, 'ledger', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<LedgerLine>>(`${base}/ledger${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<LedgerLine>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 15_000,
  });
  const isFiltered = [type, from, to].some((value) => value !== undefined);
  return (
    <Card
      title="Movements"
      side={
        <Button
          component="a"
          href={below(`${base}/ledger.csv${queryOf(filter)}`)}
          download
          variant="default"
          size="xs"
          leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}
        >
          Movements (CSV)
        </Button>
      }
    >
      <Stack>
        <Filters isFiltered={isFiltered} clear={() => set({ type: undefined, from: undefined, to: undefined })}>
          <ChoiceFilter label="Type" value={type} data={types} onChange={(value) => set({ type: value })} width={150} />
          <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
          <DayFilter label="To (UTC)" value={to} onChange={(value) => set({ to: value })} />
        </Filters>
        <Pages query={query} empty={<NoMovements isFiltered={isFiltered} />}>
          {(lines) => (
            <ListTable caption="Movements of the balance, newest first" columns={columns}>
              {lines.map((line) => (
                <Line key={line.id} line={line} />
              ))}
            </ListTable>
          )}
        </Pages>
      </Stack>
    </Card>
  );
}

function Line({ line }: { line: LedgerLine }) {
  const { type, direction, amount, balance_after, available_after, created_at } = line;
  return (
    <Table.Tr>
      <Table.Td miw={124}>
        <Time at={created_at} />
      </Table.Td>
      <Table.Td>{names[type]}</Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: 'nowrap' }}>
        {direction === 'none' ? (
          <span title="Does not change the balance">
            <Money cost={amount} exact="column" dimmed />
          </span>
        ) : (
          <Money cost={direction === 'out' ? negative(amount) : amount} exact="column" signed />
        )}
      </Table.Td>
      <Table.Td miw={200} maw={270}>
        <Cause line={line} />
      </Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: 'nowrap' }}>
        <Money cost={balance_after} exact="column" />
      </Table.Td>
      <Table.Td ta="right" style={{ whiteSpace: 'nowrap' }}>
        <Money cost={available_after} exact="column" />
      </Table.Td>
    </Table.Tr>
  );
}

function negative({ amount, currency, exact }: LedgerLine['amount']): LedgerLine['amount'] {
  return { amount: `-${amount}`, currency, exact: `-${exact}` };
}

/** The page of what it was for, by which key, and the invoice; or why it was booked, and who did it. */
function Cause({ line }: { line: LedgerLine }) {
  const { cause, reference_id, model, key } = line;
  if (cause === null) return <Booked line={line} />;
  const page = cause === 'task' ? 'tasks' : 'chats';
  return (
    <>
      <LinkTo href={`/${page}/${reference_id}`} size="sm">
        {model ?? reference_id}
      </LinkTo>
      {key && (
        <Text size="xs" c="dimmed" truncate>
          {cause === 'task' ? 'Generation' : 'Call'}, key {key.name}
        </Text>
      )}
      <OnInvoice number={line.invoice} />
    </>
  );
}

function OnInvoice({ number }: { number: string | null }) {
  const { base } = usePlace();
  if (number === null) return null;
  return (
    <Text size="xs">
      <Anchor href={below(`${base}/invoices/${encodeURIComponent(number)}/pdf`)} download inherit>
        Invoice {number}
      </Anchor>
    </Text>
  );
}

/** A booking by hand, or a payment, with a link to the audit log for operators. */
function Booked({ line: { reason, reference_id, booked_by } }: { line: LedgerLine }) {
  const { me } = usePlace();
  return (
    <>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {reason ?? reference_id}
      </Text>
      {booked_by && (
        <Text size="xs" c="dimmed" truncate>
          {me.user.is_operator ? (
            <LinkTo href={`/admin/audit?entry=${booked_by.audit_id}`} inherit>
              Booked by {booked_by.actor}
            </LinkTo>
          ) : (
            `Booked by ${booked_by.actor}`
          )}
        </Text>
      )}
    </>
  );
}

function NoMovements({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="Nothing matches these filters">Remove one of them.</Empty>;
  return (
    <Empty title="No movements yet">
      Top up first (see above). Charges for generations and calls appear here at once.
    </Empty>
  );
}
