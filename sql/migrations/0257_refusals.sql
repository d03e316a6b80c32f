-- Requests that the service refused before any work, by account, hour and reason; an empty text where one has no such name.
-- module: money
create table refusals (
  account_id text not null references accounts (id) on delete cascade,
  start timestamptz not null, -- of the hour
  reason text not null check (length(reason) between 1 and 40),
  key_id text not null,
  project_id text not null,
  budget_id text not null,
  model text not null,
  count bigint not null check (count > 0),
  primary key (account_id, start, reason, key_id, project_id, budget_id, model)
);
create index refusals_by_start on refusals (start);
create index refusals_of_budgets on refusals (account_id, budget_id, start) where budget_id <> '';
