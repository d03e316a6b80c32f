-- Projects of an account: what some of its keys belong to, and all that they spend. The project "default" of every
-- account has no row (docs/decisions/0116).
-- room: accounts
create table projects (
  id text primary key check (id <> 'default'),
  account_id text not null references accounts (id) on delete cascade,
  name text not null check (length(name) between 1 and 100),
  created_at timestamptz not null,
  archived_at timestamptz
);
create unique index projects_by_name on projects (account_id, lower(name)) where archived_at is null;

-- Where a key belongs to; null is the default. A key that shares a budget is where that budget is. Movements have the
-- project that the key was in when its hold was made: what is moved later takes no spending along.
alter table budgets add column project_id text;
alter table open_holds add column project_id text;
alter table ledger_entries add column project_id text;

-- Sums of charges, by project too. Only the job that makes them waits for the index: some rows per key, model and day.
alter table usage_sums add column project_id text not null default 'default';
alter table usage_sums drop constraint usage_sums_pkey;
alter table usage_sums add primary key (account_id, step, start, key_id, model, kind, project_id);
