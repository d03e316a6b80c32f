-- Budgets of an account: what all of it, a project, a key or a member may spend in a day, a week, a month or in total.
-- A key's own monthly limit is in `budgets`.
--
-- Only a hard budget counts, under the lock of the account's balance; what a soft one has spent is read from the ledger.
-- Its period began at `period_start`. `spent` is `opening`, what was charged of the period when it began to count, and the
-- charges behind the entry `since`. An amount below what is used takes nothing back: `allowed` is what was used when the
-- amount was set, or the period began (docs/decisions/0117).
-- room: money
create table account_budgets (
  id text primary key,
  account_id text not null references accounts (id),
  name text not null check (length(name) between 1 and 100),
  scope text not null check (scope in ('account', 'project', 'key', 'member')),
  subject text, -- the project, the key that has the budget, the member; null: the account
  period text not null check (period in ('day', 'week', 'month', 'total')),
  amount bigint not null,
  is_hard boolean not null,
  created_at timestamptz not null,
  period_start timestamptz not null,
  spent bigint not null default 0,
  held bigint not null default 0,
  exposed bigint not null default 0,
  opening bigint not null default 0,
  since bigint not null default 0,
  allowed bigint not null default 0,
  check ((scope = 'account') = (subject is null)),
  check (is_hard or (spent = 0 and held = 0 and exposed = 0))
) with (fillfactor = 50);
create index account_budgets_of_account on account_budgets (account_id, id);

-- room: money
create function is_sound(r account_budgets) returns boolean immutable language plpgsql as $$
begin
  return r.amount between 0 and 1000000000000000 and r.spent >= r.opening and r.opening >= 0 and r.held >= 0
    and r.exposed >= 0 and r.since >= 0
    and (not r.is_hard or r.spent + r.held + r.exposed <= greatest(r.amount, r.allowed));
end $$;
alter table account_budgets add constraint account_budgets_are_sound check (is_sound(account_budgets));

-- Number of the account's hard budgets: without one, nobody looks for them.
alter table balances add column hard_budgets int not null default 0;

-- Budgets that a hold counts in; null: none.
alter table open_holds add column budget_ids text[];

-- The person who made a key, for their budget; null: the command line, or a version before. Rotations leave it.
alter table budgets add column member_id text;

-- Charges of a budget behind its entry `since` that were looked at, up to the entry of the account's mark.
-- room: money
create table book_budget_marks (
  budget_id text primary key references account_budgets (id) on delete cascade,
  since bigint not null,
  spent bigint not null
);
