-- Everything that the migrations before this one (0001 to 0070) made, in one file. A database that has all of them is
-- taken over as it is (src/db/taken-over.ts).
--
-- Above each table stands the module that owns it. Functions that a CHECK calls are part of their table and stand here;
-- all others, and the triggers, are in sql/functions.

-- Accounts, keys and money. Amounts are bigint millionths of the account's currency.

-- room: accounts
create table accounts (
  id text primary key,
  name text not null check (length(name) between 1 and 200),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'active' check (status in ('active', 'blocked')),
  webhook_secret text not null check (webhook_secret like 'whsec\_%'),
  created_at timestamptz not null,
  webhook_secret_before text check (webhook_secret_before like 'whsec\_%'), -- signs beside the other for a day
  webhook_secret_rotated_at timestamptz,
  unique (id, currency),
  check ((webhook_secret_before is null) = (webhook_secret_rotated_at is null))
);

-- room: accounts
create table api_keys (
  id text primary key,
  account_id text not null references accounts,
  name text not null check (length(name) between 1 and 200),
  hash bytea not null unique check (length(hash) = 32), -- SHA-256 of the key; the key itself is nowhere
  prefix text not null,
  last_four text not null,
  created_at timestamptz not null,
  deleted_at timestamptz,
  -- What it is for: programs of its account, or the dashboard's playground. Its name does not say: two keys may have
  -- the same.
  kind text not null default 'program' check (kind in ('program', 'playground')),
  -- The key whose budget it uses, if not its own: it was made by a rotation. The same as budgets.shares, where callers
  -- are looked up.
  budget_id text references api_keys,
  -- What it may be used for beyond its limit: until when, for what, and from where. Null: no rule.
  expires_at timestamptz,
  scopes text[] check (scopes <@ array['chat', 'media', 'read'] and cardinality(scopes) > 0),
  addresses text[] check (cardinality(addresses) between 1 and 50),
  unique (id, account_id)
);
create index api_keys_of_account on api_keys (account_id, created_at);
-- However many nodes begin at once.
create unique index api_keys_playground on api_keys (account_id) where kind = 'playground' and deleted_at is null;

-- A number that grows with every change to what a node remembers of callers. A node asks for it twice a second and
-- keeps all it knows while it stays the same.
-- room: accounts
create table callers_version (
  only_row boolean primary key default true check (only_row),
  version bigint not null default 0
);
insert into callers_version default values;

-- One lock guards all money of an account: its row in balances. Every function takes it first, in a
-- statement of its own, and reads budgets, holds and entries in later statements, whose snapshots
-- then show all that earlier owners of the lock committed. Only move_money takes several such locks,
-- in the order of their ids. So no two of these functions can wait for each other in a circle.
--
-- Holds and entries have no foreign keys: the functions refuse an account or key that is not there,
-- nothing deletes one that had money, and `medley books` looks. The checks took 9 of the 69 µs of a batched hold.
--
-- Plans are kept by each connection, and one that was good for small tables, or for statistics of an
-- hour ago, must not read a whole table or a whole account later on. So all money functions plan
-- without sequential scans, and look events up with `is not distinct from`, which no index serves:
-- with `account_id =` the planner may take the entries' primary key and filter, which made each look-up
-- read all entries of a busy account (test/money/holds.plans.test.ts).

-- One narrow row per account, rewritten by every movement; accounts are read on every request and
-- almost never written, so the two stand apart. Free room on the page keeps those rewrites HOT.
-- room: money
create table balances (
  account_id text primary key,
  currency text not null,
  amount bigint not null default 0,  -- available + held
  held bigint not null default 0,
  entries bigint not null default 0, -- number of the account's last ledger entry
  foreign key (account_id, currency) references accounts (id, currency)
) with (fillfactor = 50);

-- What holds of each row. One CHECK per table, which calls a function: PostgreSQL parses the stored
-- form of every CHECK anew in every statement that writes to its table. Written out, fifteen of them
-- made the insert of one ledger entry take 116 µs; with this one it takes 16, a whole plain hold 83
-- instead of 222. Amounts stay within a billion units (money_max): sums of thousands still fit a bigint.
-- room: money
create function is_sound(r balances) returns boolean immutable language plpgsql as $$
begin
  return r.held >= 0 and r.amount >= r.held and r.amount <= 1000000000000000;
end $$;
alter table balances add constraint balances_are_sound check (is_sound(balances));

-- A key's month. A key that was made by a rotation uses the budget of the key that it replaces: both spend, hold and
-- are limited as one. `shares` names the first key of them all; a row with it says nothing of its own.
--
-- A limit that is set below what was spent and held by then takes neither back. What stood when it was set remains the
-- bound until what was held has ended, and the month is over.
-- room: money
create table budgets (
  key_id text primary key,
  account_id text not null,
  limit_month bigint, -- null: no limit
  month date not null,
  spent bigint not null default 0, -- belongs to `month`
  held bigint not null default 0,  -- open holds count in the current month
  shares text references budgets,
  limited_month date,
  limited_spent bigint not null default 0, -- in `limited_month`
  limited_held bigint not null default 0,
  foreign key (key_id, account_id) references api_keys (id, account_id)
) with (fillfactor = 50);

-- room: money
create function is_sound(r budgets) returns boolean immutable language plpgsql as $$
begin
  if r.spent + r.held > r.limit_month
      and r.spent + r.held > r.limited_held + (case when r.month = r.limited_month then r.limited_spent else 0 end)
    or r.shares is not null and (r.spent <> 0 or r.held <> 0 or r.limit_month is not null) then
    return false;
  end if;
  return r.spent >= 0 and r.held >= 0 and coalesce(r.limit_month, 0) between 0 and 1000000000000000
    and r.month = date_trunc('month', r.month::timestamp);
end $$;
alter table budgets add constraint budgets_are_sound check (is_sound(budgets));

-- The open holds, and nothing else: closing one deletes its row. What became of it is the ledger's
-- entry of event `close`; the view `holds` shows both. A row that only changed its state cost a new
-- version and a new index entry at each close, and the table grew as fast as the ledger.
-- room: money
create table open_holds (
  account_id text not null,
  ref text not null, -- the task or the chat call it is for
  key_id text not null,
  amount bigint not null,
  model text not null,
  kind text not null,
  created_at timestamptz not null,
  expires_at timestamptz, -- chat only: a stream whose node died gives its money back; by the database's clock
  node_id text, -- the node that answers for it: the sweep leaves it alone while that one is alive; null: none does
  primary key (account_id, ref)
);
create index open_holds_expiring on open_holds (expires_at) where expires_at is not null;

-- room: money
create function hold_is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.kind in ('chat', 'image', 'video', 'audio', 'embedding');
end $$;
alter table open_holds add constraint open_holds_are_sound check (hold_is_sound(open_holds));

-- Double entry with one column per book instead of one row per leg: that the legs of a movement add
-- up to nothing is then a CHECK of the table (docs/decisions/0002). The balances of the system books
-- topup_source, revenue, loss and adjust are the sums of their columns.
--
-- What upstreams charge us stands beside the customer's money of the run or call, in the same row, since both end in the
-- same moment (docs/decisions/0017). Two more books: upstream_cost, and upstream_owed, which the provider's invoice
-- will ask for; their legs add up to nothing by themselves.
-- room: money
create table ledger_entries (
  account_id text not null,
  number bigint not null, -- 1, 2, 3 … within the account, without gaps
  type text not null,     -- topup hold settle release adjustment upstream
  ref text not null,
  event text not null,    -- the type, but `close` for settle and release, `late` for the settlement of a released hold
  currency text not null,
  available bigint not null,
  held bigint not null,
  topup_source bigint not null default 0,
  revenue bigint not null default 0,
  loss bigint not null default 0,
  adjust bigint not null default 0,
  available_after bigint not null,
  held_after bigint not null,
  key_id text,
  model text,
  kind text,
  units jsonb,
  reason text,
  month date not null, -- the UTC month it counts in
  created_at timestamptz not null,
  provider text,
  route text,
  upstream_cost bigint not null default 0, -- in the currency of the account, by the rate frozen for it
  upstream_owed bigint not null default 0,
  upstream_basis text, -- told rows counted free unknown stopped; null: no upstream had it
  upstream_base bigint, -- the same cost in the base currency of that time
  base_currency text,
  upstream_unknown smallint not null default 0, -- 1: it may have cost something; -1: it did not after all
  primary key (account_id, number),
  -- Every movement happens once; settle and release are one event. Refs sort by time, so new ones go to
  -- the end of this index and not to a page of each account.
  unique (ref, account_id, event)
);
-- Usage and invoices are about charges only.
create index ledger_entries_charges on ledger_entries (account_id, created_at) where type = 'settle';
-- There are few of them, and who reads holds looks for them.
create index ledger_entries_late on ledger_entries (account_id, ref) where event = 'late';

-- What holds of each entry, in an expression for each type of entry instead of one for all. PostgreSQL prepares an
-- expression of a function anew in each transaction that comes to it, whole, with the branches of a `case` that are not
-- taken; those of an `if` that are not taken cost nothing. This check was an eighth of the time of a plain hold or
-- close, which take 4 % less with it.
--
-- An entry of type `upstream` is what an upstream has or may have charged apart from the end of the customer's money. A
-- call whose hold was released, because its node was silent for too long, is settled nevertheless when that node comes
-- back: that settlement has nothing to take from a hold, and its event is `late`.
-- room: money
create function is_sound(r ledger_entries) returns boolean immutable language plpgsql as $$
declare
  fits boolean; -- which books a movement of its type may touch, in which direction, and what it must tell
begin
  if r.type = 'hold' then
    fits := r.event = 'hold' and r.held >= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  elsif r.type = 'settle' then
    fits := (r.event = 'close' or r.event = 'late' and r.held = 0) and r.held <= 0 and r.topup_source = 0 and r.revenue >= 0 and r.loss <= 0 and r.adjust = 0
      and r.revenue + r.loss >= 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null;
  elsif r.type = 'release' then
    fits := r.event = 'close' and r.held <= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  elsif r.type = 'topup' then
    fits := r.event = 'topup' and r.available > 0 and r.held = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      and r.key_id is null and r.reason is not null and r.units is null;
  elsif r.type = 'adjustment' then
    fits := r.event = 'adjustment' and r.available <> 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0
      and r.loss = 0 and r.key_id is null and r.reason is not null and r.units is null;
  elsif r.type = 'upstream' then
    fits := r.event like 'upstream _%' and r.available = 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0
      and r.loss = 0 and r.adjust = 0 and r.upstream_basis is not null
      and r.key_id is null and r.model is not null and r.kind is not null and r.reason is null and r.units is null;
  else
    return false;
  end if;
  -- What is known of the upstream's charge.
  if r.upstream_basis is null then
    fits := fits and r.upstream_cost = 0 and r.upstream_unknown = 0 and r.upstream_base is null
      and r.provider is null and r.route is null;
  elsif r.type not in ('settle', 'release', 'upstream') or r.provider is null or r.route is null then
    return false;
  elsif r.upstream_basis in ('unknown', 'stopped') then
    fits := fits and r.upstream_cost = 0 and r.upstream_base is null
      and r.upstream_unknown = case r.upstream_basis when 'unknown' then 1 else -1 end;
  elsif r.upstream_basis in ('told', 'rows', 'counted', 'free') then
    fits := fits and r.upstream_cost between 0 and 1000000000000000
      and coalesce(r.upstream_base between 0 and 1000000000000000, false) and r.base_currency is not null
      and r.upstream_unknown = 0;
  else
    return false;
  end if;
  return fits
    and r.available + r.held + r.topup_source + r.revenue + r.loss + r.adjust = 0
    and r.upstream_cost + r.upstream_owed = 0
    and r.available_after >= 0 and r.held_after >= 0 and r.number >= 1
    and r.ref <> '' and length(r.ref) <= 255
    and r.month = date_trunc('month', r.month::timestamp)
    and r.month >= date_trunc('month', r.created_at at time zone 'UTC');
end $$;
alter table ledger_entries add constraint ledger_entries_are_sound check (is_sound(ledger_entries));

-- room: money
create view holds as
  select account_id, ref, key_id, 'open' as state, amount, null::bigint as cost, model, kind, null::timestamptz as closed_at
    from open_holds
  union all
  select account_id, ref, key_id, 'settled', -held, revenue + loss, model, kind, created_at
    from ledger_entries where type = 'settle'
  union all
  select account_id, ref, key_id, 'released', -held, null, model, kind, created_at
    from ledger_entries e where type = 'release' and not exists (
      select from ledger_entries l where l.account_id = e.account_id and l.ref = e.ref and l.event = 'late');

-- How far `medley books` has recomputed each account and key; entries never change, so it goes on
-- from here.
-- room: money
create table book_marks (
  account_id text primary key,
  number bigint not null,
  available bigint not null,
  held bigint not null
);

-- room: money
create table book_key_marks (
  key_id text primary key,
  month date not null,
  spent bigint not null
);

-- Sums of charges by hour and by day, so that a page over a million of them answers at once. Derived from the
-- ledger and never the other way round: everything after an account's mark is read from the ledger itself, and
-- `medley books` adds the sums up again.
-- room: money
create table usage_sums (
  account_id text not null,
  step text not null check (step in ('hour', 'day')),
  start timestamptz not null, -- of the hour or the day, UTC
  key_id text not null,
  model text not null,
  kind text not null,
  charges bigint not null,
  cost bigint not null,
  units jsonb not null, -- unit → decimal text
  primary key (account_id, step, start, key_id, model, kind)
);

-- How far each account's entries are in the sums.
-- room: money
create table usage_marks (
  account_id text primary key,
  number bigint not null
);

-- What an account wants on its invoices, and when it wants to be told that money runs out.

-- room: billing
create table billing_details (
  account_id text primary key references accounts,
  company text not null default '' check (length(company) <= 200),
  address text not null default '' check (length(address) <= 400),
  postal_code text not null default '' check (length(postal_code) <= 20),
  city text not null default '' check (length(city) <= 100),
  country text not null default '' check (country ~ '^([A-Z]{2})?$'), -- ISO 3166-1
  tax_id text not null default '' check (length(tax_id) <= 40),
  email text not null default '' check (length(email) <= 254),
  updated_at timestamptz not null
);

-- Below this much available, the account's people get a mail; once, until there is more again. It is noted once the mail
-- server has taken the mail, and claimed meanwhile, so that neither a crash loses it nor two nodes send it.
-- room: billing
create table balance_alerts (
  account_id text primary key references accounts,
  threshold bigint not null check (threshold between 1 and 1000000000000000), -- millionths of the account's currency
  told_at timestamptz, -- null: there was more than that when somebody last looked
  updated_at timestamptz not null,
  telling_at timestamptz, -- since when somebody tells; a claim that nobody ends counts for some minutes
  seen_entry bigint       -- of a balance that was told of: how far its ledger has been looked through since
);

-- The last number of each series and year of issue. It is raised in the transaction that makes the invoice, under the
-- lock of this row: a run that dies takes its number back with it, so that there are no gaps.
-- room: billing
create table invoice_series (
  series text not null check (series ~ '^[A-Z0-9]{1,10}$'),
  year int not null,
  last bigint not null default 0,
  primary key (series, year)
);

-- One invoice for each account and month (UTC) in which anything was charged, paid in or corrected; its text is written
-- once and never changed. What is charged in a month after its invoice was made, since clocks were wrong or a call was
-- settled late, goes on a supplementary invoice of its own number.
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
  sequence int not null check (sequence >= 1), -- 1 is the invoice of the month, 2 and more supplement it
  -- The number of the account's last ledger entry when the invoice was made; charges of the month with a higher number
  -- are on no invoice yet.
  through bigint not null,
  primary key (account_id, month, sequence),
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

-- The processes that run the service, as far as they say that they are alive.
-- room: queue
create table nodes (
  id text primary key, -- of one process: the next start is another node
  host text not null,
  pid int not null,
  role text not null,
  version text not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  running jsonb not null default '{}', -- queue → jobs in hand
  is_paused boolean not null default false -- an operator wants it to take nothing new
);

-- What all nodes share and nobody configures: secrets made at the first start.
-- room: db
create table settings (
  name text primary key,
  value text not null
);

-- What operators changed about models while the service runs: whether one takes work, in which order its
-- routes are tried, which of them take nothing new. Everything else about models stands in the
-- configuration, and so does all of this where there is no row (docs/decisions/0019).
-- room: catalog
create table model_overrides (
  model text primary key, -- may be in the configuration no more; counts again when it comes back
  is_off boolean not null default false,
  route_order text[] not null default '{}', -- ids; those that are not named follow in their own order
  drained text[] not null default '{}',     -- ids
  updated_at timestamptz not null
);

-- Health of routes: what one node learned, all nodes act on. A route without a row is healthy. A route that fails is
-- closed off for the account that met it; for all accounts (account_id '') only when several met it.
-- room: routing
create table route_health (
  route text not null,
  cause text not null check (cause in ('upstream_error', 'timeout')),
  openings int not null check (openings >= 1), -- in a row; each makes the next pause longer
  opened_at timestamptz not null,
  retry_at timestamptz not null,               -- from here on one request at a time may try
  probing_until timestamptz,
  account_id text not null default '',
  primary key (route, account_id)
);

-- Tasks: created and finished by one call each, so that neither holds a balance over round trips.
-- room: tasks
create table tasks (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  model text not null,
  kind text not null check (kind in ('image', 'video', 'audio')),
  -- JSON as text: jsonb refuses NUL and lone surrogates, which are a caller's right to send.
  input text not null,
  metadata text not null,
  webhook_url text,
  currency text not null,
  pricing jsonb not null,    -- frozen at creation: price rows and rate
  held_units jsonb not null, -- unit → decimal text, what the estimate was made of
  estimate bigint not null check (estimate >= 0),
  status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed')),
  cost bigint not null default 0 check (cost >= 0 and cost <= estimate),
  error_type text check (error_type in
    ('upstream_error', 'timeout', 'content_policy_violation', 'invalid_request', 'canceled', 'internal_error')),
  error_message text,
  counts_as_failure boolean not null default false, -- toward the 25 in 24 hours
  body text,                 -- the final bytes of GET and of the webhook, made once
  files jsonb not null default '[]', -- storage keys of the output
  files_removed_at timestamptz,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  deadline_at timestamptz not null,  -- the sweep ends what is not finished by then
  primary key (account_id, id),
  check ((status in ('succeeded', 'failed')) = (completed_at is not null)),
  check ((completed_at is null) = (body is null)),
  check ((status = 'failed') = (error_type is not null)),
  check (status = 'succeeded' or cost = 0),
  check (status <> 'running' or started_at is not null),
  check (status = 'failed' or not counts_as_failure)
);
create index tasks_unfinished on tasks (deadline_at) where completed_at is null;
create index tasks_counted on tasks (account_id, completed_at) where counts_as_failure;
create index tasks_with_files on tasks (completed_at) where files_removed_at is null and files <> '[]';
create index tasks_by_completion on tasks (completed_at) where completed_at is not null;

-- One try of a route: written down before the upstream is called. The functions that change it are safe to repeat when
-- their answer was lost, and refuse a worker whose claim is no longer the one in the row. Who locks both rows locks the
-- task's first.
-- room: tasks
create table attempts (
  account_id text not null,
  task_id text not null,
  number int not null check (number >= 1),
  route text not null,
  provider text not null,
  route_settings text not null, -- JSON: the route as it was at the submit; no reload changes a run
  claim text not null, -- names the worker's hold on this try: who lost it writes nothing more
  -- abandoned: the task ended without its run, which the poll job is to stop upstream
  state text not null default 'submitting' check (state in
    ('submitting', 'accepted', 'done', 'failed', 'not_started', 'ambiguous', 'canceled', 'abandoned')),
  reason text,
  message text,
  run_ref text, -- JSON: the upstream's name for the run, opaque to all but its adapter
  upstream_cost text,
  created_at timestamptz not null,
  ended_at timestamptz,
  upstream_amount bigint, -- as the ledger has it; null: unknown, or nothing was run
  primary key (account_id, task_id, number),
  foreign key (account_id, task_id) references tasks on delete cascade,
  check ((state in ('submitting', 'accepted')) = (ended_at is null)),
  check (state <> 'accepted' or run_ref is not null)
);
-- One open attempt per task: two workers can never have a task at two upstreams knowingly.
create unique index attempts_open on attempts (account_id, task_id) where ended_at is null;
-- Failed tries of routes by time, for the operator: few of all tries, so that ending one that succeeded costs nothing.
create index attempts_gone_wrong on attempts (ended_at) where state in ('failed', 'not_started', 'ambiguous', 'abandoned');

-- room: tasks
create table idempotency_keys (
  account_id text not null references accounts,
  key text not null check (length(key) between 1 and 255),
  body_hash bytea not null,
  task_id text not null,
  created_at timestamptz not null,
  primary key (account_id, key)
);
create index idempotency_keys_by_time on idempotency_keys (created_at);

-- Files of callers: what they uploaded, and what the inputs of their tasks brought along.
-- room: files
create table files (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  task_id text,              -- of whose input it is a part: in no list, counted in no limit, gone with the task
  filename text not null,
  purpose text not null,
  storage_key text not null,
  -- Measured from the bytes.
  kind text not null check (kind in ('image', 'video', 'audio')),
  content_type text not null,
  size_bytes bigint not null check (size_bytes > 0),
  width int,
  height int,
  duration_ms int,
  ready boolean not null default false, -- false until the bytes are stored: the row is there first
  created_at timestamptz not null,
  expires_at timestamptz not null, -- from then on it is gone for its owner, and soon after for us
  primary key (account_id, id)
);
create index files_by_expiry on files (expires_at);
create index files_of_tasks on files (account_id, task_id) where task_id is not null;

-- Webhooks: a delivery is written, with its job, by the call that ends the task. The job says when an attempt is due, by
-- the database's clock; these tables say whether there is a slot for it.
--
-- In flight, over all nodes: at most 4 per lane (one account, one URL without its query), 1 if the
-- last attempt there timed out, and 64 per host, of which retries leave a quarter to first attempts. A
-- delivery that finds no slot gives up its job and is parked; whoever ends an attempt hands the slot
-- on, with a new job, in the same call. So 10,000 deliveries for a dead receiver are 10,000 quiet rows.
--
-- Whatever counts slots holds the lock of their host first; hosts are locked in the order of their names.

-- room: webhooks
create table deliveries (
  account_id text not null references accounts,
  id text not null,
  task_id text,               -- null: a test payload
  event text not null check (event in ('task.succeeded', 'task.failed')),
  url text not null,
  body text not null,         -- sent as it is, at every attempt
  lane text not null,
  host text not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'dropped')),
  attempts int not null default 0 check (attempts >= 0),
  failures int not null default 0 check (failures between 0 and attempts), -- attempts of the schedule that failed
  by_hand boolean not null default false, -- the attempt that waits was asked for: it is outside the schedule
  jobs int not null default 1 check (jobs >= 1), -- so far; only the newest may make an attempt, the others are stale
  next_at timestamptz,        -- what people are told; the job knows when
  created_at timestamptz not null,
  delivered_at timestamptz,
  ended_at timestamptz,
  primary key (account_id, id),
  check ((state = 'waiting') = (next_at is not null)),
  check (state <> 'delivered' or delivered_at is not null),
  check (state = 'waiting' or ended_at is not null)
);
create unique index deliveries_of_task on deliveries (account_id, task_id) where task_id is not null;
create index deliveries_waiting on deliveries (next_at) where state = 'waiting';
create index deliveries_ended on deliveries (ended_at) where state <> 'waiting';
-- A delivery by its id alone, and the newest ones of all accounts.
create index deliveries_by_id on deliveries (id);

-- room: webhooks
create table delivery_attempts (
  account_id text not null,
  delivery_id text not null,
  number int not null check (number >= 1),
  started_at timestamptz not null,
  ended_at timestamptz not null,
  duration_ms int not null check (duration_ms >= 0),
  status int,                 -- null: no answer, see error
  error text,
  answer text,                -- its first 2 kB
  primary key (account_id, delivery_id, number),
  foreign key (account_id, delivery_id) references deliveries on delete cascade,
  check (status is not null or error is not null)
);

-- One row per attempt in flight, and per slot that was handed on to a job not yet begun.
-- room: webhooks
create table places (
  account_id text not null,
  delivery_id text not null,
  lane text not null,
  host text not null,
  claim text,                 -- names the worker's hold on the attempt; null: handed on
  taken_at timestamptz not null,
  -- Of a test payload: its attempt has no job, so nobody notices when the process that makes it dies. By the clock of
  -- the database that jobs have. Null: the attempt of a job, or a slot that was handed on.
  expires_at timestamptz,
  primary key (account_id, delivery_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index places_by_lane on places (lane);
create index places_by_host on places (host, account_id);

-- Deliveries that wait for a slot, without a job. queue_for: what is full.
-- room: webhooks
create table parked (
  account_id text not null,
  delivery_id text not null,
  lane text not null,
  host text not null,
  retry boolean not null,
  since timestamptz not null,
  queue_for text not null check (queue_for in ('lane', 'host')),
  primary key (account_id, delivery_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index parked_by_lane on parked (lane, queue_for, retry, since);
create index parked_by_host on parked (host, queue_for, account_id, retry, since);

-- Lanes whose last attempt timed out.
-- room: webhooks
create table slow_lanes (
  lane text primary key,
  since timestamptz not null
);
create index slow_lanes_by_age on slow_lanes (since);

-- A record of each chat call: what was tried, counted, charged, and how long it took. No content. It names its account
-- as the ledger does, without a foreign key: money of this account was held for the call, and looking it up again was a
-- fifth of what PostgreSQL does for a record.
-- room: chat
create table chat_calls (
  account_id text not null,
  id text not null,           -- the request's id, under which its money was held
  key_id text not null,
  model text not null,
  style text not null check (style in ('completions', 'messages', 'responses', 'embeddings')),
  stream boolean not null,
  status int not null,        -- as it was answered, or would have been had the answer not begun
  error_type text,
  finish text,                -- in the words of the style
  attempts jsonb not null,    -- [{route, outcome, reason, duration_ms}]
  input_tokens int not null check (input_tokens >= 0),
  cached_input_tokens int not null check (cached_input_tokens >= 0),
  cache_write_tokens int not null check (cache_write_tokens >= 0),
  output_tokens int not null check (output_tokens >= 0),
  reasoning_tokens int not null check (reasoning_tokens >= 0),
  counted_here boolean not null, -- the upstream told no usage, or not all of it
  cost bigint not null check (cost >= 0),
  currency text not null,
  first_content_ms int,
  total_ms int not null,
  created_at timestamptz not null,
  upstream_cost bigint, -- as the ledger has it; null: unknown, or nothing was run
  -- Of those written to the upstream's cache: how many stay there for an hour. Null: written by a node that did not know
  -- of such.
  cache_write_1h_tokens int check (cache_write_1h_tokens >= 0),
  primary key (account_id, id)
);
create index chat_calls_by_time on chat_calls (created_at);
-- Calls in which a route gave no answer, for the operator: few of all calls.
create index chat_calls_gone_wrong on chat_calls (created_at) where status >= 500 or jsonb_array_length(attempts) > 1;

-- Who signs in to the dashboard. The tables in the schema auth are the login library's (better-auth 1.6), with
-- its names; only src/accounts/login.ts opens them by way of it, and src/accounts/members.ts reads them.
-- An organisation is an account, under the same id.
create schema auth;

-- room: accounts
create table auth."user" (
  id text primary key,
  name text not null,
  email text not null unique,
  "emailVerified" boolean not null,
  image text,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null default current_timestamp,
  "twoFactorEnabled" boolean,
  "isOperator" boolean not null default false
);

-- room: accounts
create table auth.session (
  id text primary key,
  "expiresAt" timestamptz not null,
  token text not null unique,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null,
  "ipAddress" text,
  "userAgent" text,
  "userId" text not null references auth."user" on delete cascade,
  "activeOrganizationId" text,
  "provedAt" timestamptz -- when its person last gave their password or followed a sign-in link; null: when it began
);
create index session_of_user on auth.session ("userId");

-- room: accounts
create table auth.account (
  id text primary key,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null references auth."user" on delete cascade,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz,
  "refreshTokenExpiresAt" timestamptz,
  scope text,
  password text, -- scrypt
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null
);
create index account_of_user on auth.account ("userId");

-- room: accounts
create table auth.verification (
  id text primary key,
  identifier text not null,
  value text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default current_timestamp,
  "updatedAt" timestamptz not null default current_timestamp
);
create index verification_by_identifier on auth.verification (identifier);

-- room: accounts
create table auth.organization (
  id text primary key references public.accounts,
  name text not null,
  slug text not null unique,
  logo text,
  "createdAt" timestamptz not null,
  metadata text
);

-- room: accounts
create table auth.member (
  id text primary key,
  "organizationId" text not null references auth.organization on delete cascade,
  "userId" text not null references auth."user" on delete cascade,
  role text not null check (role in ('owner', 'developer', 'billing', 'viewer')),
  "createdAt" timestamptz not null,
  unique ("userId", "organizationId")
);
create index member_of_organization on auth.member ("organizationId");

-- room: accounts
create table auth.invitation (
  id text primary key,
  "organizationId" text not null references auth.organization on delete cascade,
  email text not null,
  role text check (role in ('owner', 'developer', 'billing', 'viewer')),
  status text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default current_timestamp,
  "inviterId" text not null references auth."user" on delete cascade
);
create index invitation_of_organization on auth.invitation ("organizationId");
create index invitation_by_email on auth.invitation (email);

-- room: accounts
create table auth."twoFactor" (
  id text primary key,
  secret text not null,        -- encrypted with the service's secret
  "backupCodes" text not null, -- encrypted with the service's secret
  "userId" text not null references auth."user" on delete cascade,
  verified boolean,
  "failedVerificationCount" integer,
  "lockedUntil" timestamptz,
  "lastStep" bigint -- the time step of the last code that counted (RFC 6238): codes of it and of earlier ones do not
);
create index two_factor_of_user on auth."twoFactor" ("userId");

-- A link that signs one person in, once: shown on the terminal, handed over by the operator, or asked for by mail.
-- room: accounts
create table login_links (
  hash bytea primary key check (length(hash) = 32), -- SHA-256 of the token; the token itself is nowhere
  user_id text not null references auth."user" on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  by_mail boolean not null default false -- one that its person asked for by mail asks for the second factor
);

-- An e-mail address counts once somebody has followed the link that was mailed to it. Until then it is a claim: whose
-- row here waits for that link, or, where the service sends no mail, an address of auth."user" without "emailVerified".
-- Whoever proves the mailbox gets the address; an unproved holder loses it.
-- room: accounts
create table email_claims (
  user_id text primary key references auth."user" on delete cascade, -- a new claim replaces the one before
  hash bytea not null unique check (length(hash) = 32), -- SHA-256 of the token; the token itself is nowhere
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

-- Who did what in the dashboard, and what operators did to accounts of others. Never changed, and kept when an account
-- is deleted.
-- room: accounts
create table audit_entries (
  id text primary key,
  account_id text,                     -- null: it concerns the whole service
  user_id text,                        -- null: the command line
  actor text not null,                 -- as it was called then: e-mail address, or "command line"
  action text not null,                -- "key.create", "account.credit"
  subject text,                        -- id of what it was done to
  details jsonb,                       -- never a secret
  address text,                        -- where from
  created_at timestamptz not null
);
create index audit_entries_of_account on audit_entries (account_id, id);
