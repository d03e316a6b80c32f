import { Anchor, Button, Group, Table, Text } from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { useInfiniteQuery } from '@tanstack/react-query';
import { below } from '../../below.ts';
import type { InvoiceLineView, InvoicesView } from '../../../../src/dashboard/views/invoices.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { day_form, month_form } from '../../ui/dates.ts';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';

const columns = [
  { name: 'Number' },
  { name: 'Month (UTC)' },
  { name: 'Issued' },
  { name: 'Total', align: 'right' },
  { name: 'Download', align: 'right' },
] as const;

/** The invoices of all months. */
export function Invoices() {
  const { account, base } = usePlace();
  const query = useInfiniteQuery({
    queryKey: [account.id, 'invoices'],
    queryFn: ({ pageParam, signal }) =>
      api.get<InvoicesView>(`${base}/invoices${queryOf({ before: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: InvoicesView) => (page.has_more ? page.data.at(-1)?.number : undefined),
  });
  const issues = query.data?.pages[0]?.issues ?? false;
  return (
    <Pages query={query} empty={<NoInvoices issues={issues} />}>
      {(invoices) => (
        <Card
          title="Invoices"
          side={
            <Text size="sm" c="dimmed">
              An invoice is issued within hours after the end of each month, and is paid from the balance.
            </Text>
          }
        >
          <ListTable caption="Invoices, newest first" columns={columns}>
            {invoices.map((invoice) => (
              <Line key={invoice.number} invoice={invoice} base={base} />
            ))}
          </ListTable>
        </Card>
      )}
    </Pages>
  );
}

function Line({ invoice, base }: { invoice: InvoiceLineView; base: string }) {
  const { number, supplement_to, month, issued_at, total } = invoice;
  return (
    <Table.Tr>
      <Table.Th scope="row" role="rowheader" fw={600} style={{ whiteSpace: 'nowrap' }}>
        <Anchor href={below(`${base}/invoices/${number}/pdf`)} download inherit>
          {number}
        </Anchor>
        {supplement_to !== null && (
          <Text size="xs" c="dimmed" fw={400}>
            adds to {supplement_to}
          </Text>
        )}
      </Table.Th>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>{month_form.format(new Date(`${month}-01T00:00:00Z`))}</Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>{day_form.format(new Date(issued_at))}</Table.Td>
      <Table.Td ta="right">
        <Money cost={total} />
      </Table.Td>
      <Table.Td>
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          <Download href={`${base}/invoices/${number}/pdf`} kind="PDF" number={number} icon />
          <Download href={`${base}/invoices/${number}/csv`} kind="CSV" number={number} />
          <Download href={`${base}/invoices/${number}/json`} kind="JSON" number={number} />
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

type DownloadProps = { href: string; kind: string; number: string; icon?: boolean };

function Download({ href, kind, number, icon = false }: DownloadProps) {
  return (
    <Button
      component="a"
      href={below(href)}
      download
      size="xs"
      variant={icon ? 'light' : 'default'}
      aria-label={`${kind} of ${number}`}
      {...(icon && { leftSection: <ArrowDownTrayIcon width={15} aria-hidden /> })}
    >
      {kind}
    </Button>
  );
}

function NoInvoices({ issues }: { issues: boolean }) {
  if (!issues) {
    return (
      <Empty title="No invoices here">
        The operator has not set an issuer: <code>billing.issuer</code> in <code>medley.yaml</code>. Usage and every
        movement of the balance can be downloaded as CSV.
      </Empty>
    );
  }
  return (
    <Empty title="No invoices yet" action={<LinkTo href="/billing?tab=details">Set your billing details</LinkTo>}>
      The first one is issued after a month with a charge or a payment.
    </Empty>
  );
}
