import { all_charges } from '../money/books.ts';
import type { Rule, TableScan } from '../money/rule.ts';

/** Few at a time: each is compared with all charges of its month. */
const scan: TableScan = { table: 'invoices', time: 'issued_at', rows: 20 };

/** Rules about invoices for `medley books`. */
export const billing_rules: readonly Rule[] = [
  {
    name: 'an invoice comes to what the ledger charged in its month',
    scan,
    sql: `select i.numbers as subject, 'invoice and ledger differ' as detail, abs(i.total - s.charged) as off_by
            from (select n.account_id, n.month, sum(a.total) as total, string_agg(a.number, ', ' order by a.sequence) as numbers
                    from (select distinct account_id, month from invoices
                           where issued_at > $1::timestamptz and issued_at <= $2::timestamptz) n
                    join invoices a using (account_id, month) group by n.account_id, n.month) i cross join lateral (
              select coalesce(sum(c.charged), 0) as charged from ${all_charges} c
               where c.account_id = i.account_id and c.created_at >= i.month::timestamp at time zone 'UTC'
                 and c.created_at < (i.month + interval '1 month') at time zone 'UTC') s
           where i.total <> s.charged`,
  },
  {
    name: 'the lines of an invoice add up to its total',
    scan,
    sql: `select i.number as subject, 'lines and total differ' as detail, abs(i.total - s.amount) as off_by
            from invoices i cross join lateral (
              select coalesce(sum((line ->> 'amount')::numeric), 0) * 1000000 as amount
                from jsonb_array_elements(i.snapshot -> 'lines') line) s
           where i.issued_at > $1::timestamptz and i.issued_at <= $2::timestamptz
             and (i.total <> s.amount or i.total <> (i.snapshot ->> 'total')::numeric * 1000000)`,
  },
  {
    name: 'the numbers of a series have no gaps',
    sql: `select s.series || '-' || s.year as subject, 'numbers are missing' as detail, 0 as off_by
            from invoice_series s
            left join (select series, year, count(*) as invoices, max(serial) as last from invoices group by series, year) i
                 using (series, year)
           where s.last <> coalesce(i.invoices, 0) or s.last <> coalesce(i.last, 0)`,
  },
];
