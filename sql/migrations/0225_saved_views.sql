-- Lists of the dashboard, with their filters, that a person saved under a name.
-- room: accounts
create table saved_views (
  account_id text not null references accounts (id) on delete cascade,
  user_id text not null references auth."user" (id) on delete cascade,
  name text not null check (length(name) between 1 and 60),
  search text not null check (length(search) <= 2000), -- of the address: tab=all&q=red
  created_at timestamptz not null,
  primary key (account_id, user_id, name)
);
