-- One invoice for each account and month (UTC) in which anything was charged, paid in or corrected. What it says is
-- written down once and never again.

-- The last number of each series and year of issue. It is raised in the transaction that makes the invoice, under the
-- lock of this row: a run that dies takes its number back with it, so that there are no gaps.
-- room: billing
create table invoice_series (
  series text not null check (series ~ '^[A-Z0-9]{1,10}$'),
  year int not null,
  last bigint not null default 0,
  primary key (series, year)
);

-- room: billing
create table invoices (
  account_id text not null references accounts,
  month date not null check (month = date_trunc('month', month::timestamp)),
  series text not null,
  year int not null,
  serial bigint not null check (serial >= 1),
  number text not null unique, -- MED-2026-0001
  currency text not null,
  total bigint not null,       -- millionths; what the ledger charged in the month
  snapshot jsonb not null,     -- all that the invoice says: src/billing/invoice.ts
  issued_at timestamptz not null,
  primary key (account_id, month),
  unique (series, year, serial)
);

-- Months for which every account has its invoice: nobody has to look at them again.
-- room: billing
create table invoice_months (
  month date primary key,
  done_at timestamptz not null
);

-- Invoices that somebody was told of by mail.
-- room: billing
create table invoice_mails (
  number text primary key references invoices (number),
  mailed_at timestamptz not null
);

-- room: billing
create function refuse_invoice_change() returns trigger language plpgsql as $$
begin
  raise exception 'invoices are never changed or deleted' using errcode = 'restrict_violation';
end $$;
create trigger invoices_immutable before update or delete on invoices
  for each row execute function refuse_invoice_change();
create trigger invoices_not_truncated before truncate on invoices
  for each statement execute function refuse_invoice_change();
