-- What is charged in a month after its invoice was made, since clocks were wrong or a call was settled late, goes on a
-- supplementary invoice of its own number. Nothing that was issued changes.

-- sequence: 1 is the invoice of the month, 2 and more supplement it. through: the number of the account's last ledger
-- entry when the invoice was made; charges of the month with a higher number are on no invoice yet.
-- room: billing
alter table invoices
  drop constraint invoices_pkey,
  add column sequence int not null default 1 check (sequence >= 1),
  add column through bigint,
  add primary key (account_id, month, sequence);

-- Of the invoices that are there: if the month comes to their total, they cover all that is booked by now; else as many
-- entries as come to it.
alter table invoices disable trigger invoices_immutable;
update invoices i set through = case
  when i.total = (select coalesce(sum(revenue + loss), 0) from ledger_entries e where e.account_id = i.account_id
      and e.type = 'settle' and e.created_at >= i.month::timestamp at time zone 'UTC'
      and e.created_at < (i.month + interval '1 month') at time zone 'UTC')
    then (select entries from balances b where b.account_id = i.account_id)
  else coalesce((select max(number) from (
    select number, sum(revenue + loss) over (order by number) as charged from ledger_entries e
     where e.account_id = i.account_id and e.type = 'settle' and e.created_at >= i.month::timestamp at time zone 'UTC'
       and e.created_at < (i.month + interval '1 month') at time zone 'UTC') s where s.charged <= i.total), 0) end;
alter table invoices enable trigger invoices_immutable;
alter table invoices alter column through set not null, alter column sequence drop default;
