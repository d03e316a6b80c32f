-- The ledger ends where its months were closed: what is before is one line per account, its opening, which the rest must
-- follow from. Entries up to its number may be removed, after they were written to a file (medley ledger close).
-- room: money
create table ledger_openings (
  account_id text primary key,
  month date not null,    -- the first month whose entries are there
  number bigint not null check (number >= 1), -- of the last entry that was closed
  available bigint not null check (available >= 0),
  held bigint not null check (held >= 0),
  -- Sums of all entries so far, of each book: they add up to nothing, as each entry does.
  topup_source bigint not null,
  revenue bigint not null,
  loss bigint not null,
  adjust bigint not null,
  upstream_cost bigint not null,
  upstream_owed bigint not null,
  check (available + held + topup_source + revenue + loss + adjust = 0),
  check (upstream_cost + upstream_owed = 0)
);

-- What was charged in it, for invoices of the month.
-- room: money
create table ledger_closed_months (
  account_id text not null,
  month date not null,
  charged bigint not null,
  primary key (account_id, month)
);

-- The last month of a key in what was closed, and what the key spent in it so far.
-- room: money
create table ledger_closed_keys (
  key_id text primary key,
  month date not null,
  spent bigint not null
);
