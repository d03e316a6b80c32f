import { all_charges, type Rule } from '../money/books.ts';

/** Rules about invoices for `medley books`. */
export const billing_rules: readonly Rule[] = [
  {
    name: 'an invoice comes to what the ledger charged in its month',
    sql: `select i.numbers as subject, 'invoice and ledger differ' as detail, abs(i.total - s.charged) as off_by
            from (select account_id, month, sum(total) as total, string_agg(number, ', ' order by sequence) as numbers
                    from invoices group by account_id, month) i cross join lateral (
              select coalesce(sum(c.charged), 0) as charged from ${all_charges} c
               where c.account_id = i.account_id and c.created_at >= i.month::timestamp at time zone 'UTC'
                 and c.created_at < (i.month + interval '1 month') at time zone 'UTC') s
           where i.total <> s.charged`,
  },
  {
    name: 'the lines of an invoice add up to its total',
    sql: `select i.number as subject, 'lines and total differ' as detail, abs(i.total - s.amount) as off_by
            from invoices i cross join lateral (
              select coalesce(sum((line ->> 'amount')::numeric), 0) * 1000000 as amount
                from jsonb_array_elements(i.snapshot -> 'lines') line) s
           where i.total <> s.amount or i.total <> (i.snapshot ->> 'total')::numeric * 1000000`,
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
