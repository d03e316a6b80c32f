-- Mails about an account's spend that a person asked for: every day, week (from Monday) or month, by UTC.
-- room: billing
create table spend_mails (
  account_id text not null references accounts (id) on delete cascade,
  user_id text not null references auth."user" (id) on delete cascade,
  every text not null check (every in ('day', 'week', 'month')),
  grouped_by text not null check (length(grouped_by) between 1 and 80),
  ends_at timestamptz not null, -- end of the period that is mailed next
  created_at timestamptz not null,
  primary key (account_id, user_id)
);
create index spend_mails_due on spend_mails (ends_at, account_id, user_id);
