-- Accounts, their keys, and all money. Amounts are bigint millionths of the account's currency.
-- Time comes in as p_now: money never reads the clock of the database, so months can be tested.
--
-- One lock guards all money of an account: its row in balances. Every function takes it first, in a
-- statement of its own, and reads budgets, holds and entries in later statements, whose snapshots
-- then show all that earlier owners of the lock committed. Only money_batch takes several such locks,
-- in the order of their ids. So no two of these functions can wait for each other in a circle.
--
-- Holds and entries have no foreign keys: the functions refuse an account or key that is not there,
-- nothing deletes one, and `medley books` looks. The checks took 9 of the 69 µs of a batched hold.

-- room: accounts
create table accounts (
  id text primary key,
  name text not null check (length(name) between 1 and 200),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'active' check (status in ('active', 'blocked')),
  webhook_secret text not null check (webhook_secret like 'whsec\_%'),
  created_at timestamptz not null,
  unique (id, currency)
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
  unique (id, account_id)
);
create index api_keys_of_account on api_keys (account_id, created_at);

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

-- room: money
create table budgets (
  key_id text primary key,
  account_id text not null,
  limit_month bigint, -- null: no limit
  month date not null,
  spent bigint not null default 0, -- belongs to `month`
  held bigint not null default 0,  -- open holds count in the current month
  foreign key (key_id, account_id) references api_keys (id, account_id)
) with (fillfactor = 50);

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
  expires_at timestamptz, -- chat only: a stream whose node died gives its money back
  primary key (account_id, ref)
);

-- Double entry with one column per book instead of one row per leg: that the legs of a movement add
-- up to nothing is then a CHECK of the table (docs/decisions/0002). The balances of the system books
-- topup_source, revenue, loss and adjust are the sums of their columns.
-- room: money
create table ledger_entries (
  account_id text not null,
  number bigint not null, -- 1, 2, 3 … within the account, without gaps
  type text not null,     -- topup hold settle release adjustment
  ref text not null,
  event text not null,    -- the type, but `close` for settle and release
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
  primary key (account_id, number),
  -- Every movement happens once; settle and release are one event. Refs sort by time, so new ones go to
  -- the end of this index and not to a page of each account.
  unique (ref, account_id, event)
);
-- Usage and invoices are about charges only.
create index ledger_entries_charges on ledger_entries (account_id, created_at) where type = 'settle';

-- room: money
create view holds as
  select account_id, ref, key_id, 'open' as state, amount, null::bigint as cost, model, kind, null::timestamptz as closed_at
    from open_holds
  union all
  select account_id, ref, key_id, 'settled', -held, revenue + loss, model, kind, created_at
    from ledger_entries where type = 'settle'
  union all
  select account_id, ref, key_id, 'released', -held, null, model, kind, created_at
    from ledger_entries where type = 'release';

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

-- What must hold of each row. One CHECK per table, which calls a function: PostgreSQL parses the stored
-- form of every CHECK anew in every statement that writes to its table. Written out, fifteen of them
-- made the insert of one ledger entry take 116 µs; with this one it takes 16, a whole plain hold 83
-- instead of 222. Amounts stay within a billion units (money_max): sums of thousands still fit a bigint.
-- room: money
create function is_sound(r balances) returns boolean immutable language plpgsql as $$
begin
  return r.held >= 0 and r.amount >= r.held and r.amount <= 1000000000000000;
end $$;
alter table balances add constraint balances_are_sound check (is_sound(balances));

-- room: money
create function is_sound(r budgets) returns boolean immutable language plpgsql as $$
begin
  return r.spent >= 0 and r.held >= 0 and coalesce(r.limit_month, 0) between 0 and 1000000000000000
    and r.month = date_trunc('month', r.month::timestamp);
end $$;
alter table budgets add constraint budgets_are_sound check (is_sound(budgets));

-- room: money
create function is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.kind in ('chat', 'image', 'video', 'audio')
    and coalesce(r.expires_at > r.created_at, true);
end $$;
alter table open_holds add constraint open_holds_are_sound check (is_sound(open_holds));

-- room: money
create function is_sound(r ledger_entries) returns boolean immutable language plpgsql as $$
begin
  return r.available + r.held + r.topup_source + r.revenue + r.loss + r.adjust = 0
    and case r.type -- which books a movement may touch, and in which direction
      when 'topup' then r.available > 0 and r.held = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'hold' then r.held >= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'settle' then r.held <= 0 and r.topup_source = 0 and r.revenue >= 0 and r.loss <= 0 and r.adjust = 0
        and r.revenue + r.loss >= 0
      when 'release' then r.held <= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'adjustment' then r.available <> 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0
      else false end
    and r.available_after >= 0 and r.held_after >= 0 and r.number >= 1
    and r.event = case when r.type in ('settle', 'release') then 'close' else r.type end
    and length(r.ref) between 1 and 255
    and case when r.type in ('topup', 'adjustment') then r.key_id is null and r.reason is not null
      else r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null end
    and (r.units is null or r.type = 'settle')
    and r.month = date_trunc('month', r.month::timestamp)
    and r.month >= date_trunc('month', r.created_at at time zone 'UTC');
end $$;
alter table ledger_entries add constraint ledger_entries_are_sound check (is_sound(ledger_entries));

-- room: money
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'ledger entries are never changed or deleted' using errcode = 'restrict_violation';
end $$;
create trigger ledger_entries_immutable before update or delete on ledger_entries
  for each row execute function refuse_change();
create trigger ledger_entries_not_truncated before truncate on ledger_entries
  for each statement execute function refuse_change();

-- room: money
create function month_of(p_now timestamptz) returns date immutable parallel safe language sql
return date_trunc('month', p_now at time zone 'UTC')::date;

-- Plans are kept by each connection, and one that was good for small tables, or for statistics of an
-- hour ago, must not read a whole table or a whole account later on. So all money functions plan
-- without sequential scans, and look events up with `is not distinct from`, which no index serves:
-- with `account_id =` the planner may take the entries' primary key and filter, which made each look-up
-- read all entries of a busy account (test/money/holds.plans.test.ts).

-- Reserves p_amount. outcome: held; exists (this ref had a hold before: nothing new happened);
-- insufficient (402); over_limit (403). A node whose clock is behind counts in the budget's month,
-- never back in an earlier one.
-- room: money
create function money_hold(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_amount bigint,
  p_model text, p_kind text, p_expires timestamptz,
  out outcome text, out available bigint, out remaining bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  k budgets;
begin
  select * into b from balances where account_id = p_account for update;
  select * into k from budgets where key_id = p_key and account_id = p_account;
  if b.account_id is null or k.key_id is null then
    raise exception 'there is no account % with a key %', p_account, p_key using errcode = 'foreign_key_violation';
  elsif p_amount is null or p_amount < 0 then
    raise exception 'a hold of % is not an amount', p_amount using errcode = 'numeric_value_out_of_range';
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  available := b.amount - b.held;
  remaining := k.limit_month - k.spent - k.held;
  if exists (select from ledger_entries where ref = p_ref and event = 'hold' and account_id is not distinct from p_account) then
    outcome := 'exists';
  elsif available < p_amount then
    outcome := 'insufficient';
  elsif remaining < p_amount then
    outcome := 'over_limit';
  else
    outcome := 'held';
    available := available - p_amount;
    remaining := remaining - p_amount;
    update balances set held = b.held + p_amount, entries = b.entries + 1 where account_id = p_account;
    update budgets set month = k.month, spent = k.spent, held = k.held + p_amount where key_id = p_key;
    insert into open_holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at)
      values (p_account, p_ref, p_key, p_amount, p_model, p_kind, p_now, p_expires);
    insert into ledger_entries (account_id, number, type, ref, event, currency, available, held,
        available_after, held_after, key_id, model, kind, month, created_at)
      values (p_account, b.entries + 1, 'hold', p_ref, 'hold', b.currency, -p_amount, p_amount,
        available, b.held + p_amount, p_key, p_model, p_kind, k.month, p_now);
  end if;
end $$;

-- Closes an open hold, once: settled at p_cost, or released when p_cost is null. What the hold does
-- not cover is charged to what is available if p_beyond, else it is the operator's loss. outcome:
-- settled, released, or closed: nothing happened now, because the hold was closed before (state and
-- charged tell how, as after a lost answer) or never was (state is null).
-- room: money
create function money_close(
  p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb,
  out outcome text, out state text, out charged bigint, out available bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  h open_holds;
  k budgets;
begin
  select * into b from balances where account_id = p_account for update;
  if b.account_id is null then
    raise exception 'there is no account %', p_account using errcode = 'foreign_key_violation';
  elsif p_cost not between 0 and 1000000000000000 then
    raise exception 'a cost of % is not an amount', p_cost using errcode = 'numeric_value_out_of_range';
  end if;
  available := b.amount - b.held;
  delete from open_holds where account_id = p_account and ref = p_ref returning * into h;
  if h.ref is null then
    outcome := 'closed';
    select case type when 'settle' then 'settled' else 'released' end, revenue + loss into state, charged
      from ledger_entries where ref = p_ref and event = 'close' and account_id is not distinct from p_account;
    return;
  end if;
  select * into strict k from budgets where key_id = h.key_id;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  outcome := case when p_cost is null then 'released' else 'settled' end;
  state := outcome;
  charged := least(coalesce(p_cost, 0), h.amount + case when p_beyond then available else 0 end);
  available := available + h.amount - charged;
  update balances set amount = b.amount - charged, held = b.held - h.amount, entries = b.entries + 1
    where account_id = p_account;
  update budgets set month = k.month, spent = k.spent + charged, held = k.held - h.amount where key_id = h.key_id;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at)
    values (p_account, b.entries + 1, case outcome when 'settled' then 'settle' else 'release' end, p_ref, 'close',
      b.currency, h.amount - charged, -h.amount, coalesce(p_cost, 0), charged - coalesce(p_cost, 0),
      available, b.held - h.amount, h.key_id, h.model, h.kind,
      case outcome when 'settled' then p_units end, k.month, p_now);
end $$;

-- Money in by a top-up (p_amount > 0), or a correction by the operator (either sign, never below
-- what is available). outcome: booked; exists (this type and ref was booked before); conflict (it
-- was, with another amount); insufficient; too_large (the account would have more than a billion).
-- room: money
create function money_credit(
  p_now timestamptz, p_account text, p_type text, p_amount bigint, p_ref text, p_reason text,
  out outcome text, out available bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  booked bigint;
begin
  select * into b from balances where account_id = p_account for update;
  if b.account_id is null then
    raise exception 'there is no account %', p_account using errcode = 'foreign_key_violation';
  elsif p_amount is null or p_amount = 0 or p_type = 'topup' and p_amount < 0 then
    raise exception 'a % of % is not an amount', p_type, p_amount using errcode = 'numeric_value_out_of_range';
  end if;
  available := b.amount - b.held;
  select e.available into booked from ledger_entries e
    where e.ref = p_ref and e.event = p_type and e.account_id is not distinct from p_account;
  if booked is not null then
    outcome := case when booked = p_amount then 'exists' else 'conflict' end;
  elsif p_amount < -available then
    outcome := 'insufficient';
  elsif p_amount > 1000000000000000 - b.amount then
    outcome := 'too_large';
  else
    outcome := 'booked';
    available := available + p_amount;
    update balances set amount = b.amount + p_amount, entries = b.entries + 1 where account_id = p_account;
    insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, topup_source, adjust,
        available_after, held_after, reason, month, created_at)
      values (p_account, b.entries + 1, p_type, p_ref, p_type, b.currency, p_amount, 0,
        case p_type when 'topup' then -p_amount else 0 end, case p_type when 'topup' then 0 else -p_amount end,
        available, b.held, p_reason, month_of(p_now), p_now);
  end if;
end $$;

-- Changes or lifts (null) the monthly limit of a key; false if there is no such key. Under the
-- account's lock, because every other writer of a budget rewrites the row it has read.
-- room: money
create function money_limit(p_key text, p_limit bigint) returns boolean language plpgsql set enable_seqscan = off as $$
begin
  perform from balances b join budgets k using (account_id) where k.key_id = p_key for update of b;
  update budgets set limit_month = p_limit where key_id = p_key;
  return found;
end $$;

-- money_hold and money_close for many callers in one round trip: the same as calling them one after
-- the other in the order of the members, except that an error (an account or key that is not there,
-- an amount below zero) fails all. Member i holds (p_verb 'hold') or closes ('close', p_amount null
-- to release). No two members may have the same account and ref. All accounts are locked in the
-- order of their ids; then the members are walked account by account with the sums so far, so that
-- a refused one does not count against those after it; then everything is written set-based.
--
-- 256 members took 72 µs of the server's time each over 1,000 accounts and 40 µs on one account when
-- the rows were found by joins; now 40 and 22 (bench/results/money.md). Hence: `lateral … offset 0`
-- makes each row an index probe whatever the planner believes of the tables' sizes; rows are
-- written at the ctid at which they were read, which cannot move while the account is locked; arrays
-- have their full length from the start, since one that begins at its second member would be unnested
-- as if that were the first.
-- room: money
create function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[],
  out outcome text[], out state text[], out charged bigint[], out available bigint[], out remaining bigint[]
) language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  no_numbers constant bigint[] := array_fill(null::bigint, array[cardinality(p_ref)]);
  no_texts constant text[] := array_fill(null::text, array[cardinality(p_ref)]);
  -- What each member writes.
  w_number bigint[] := no_numbers; w_held bigint[] := no_numbers; w_held_after bigint[] := no_numbers;
  w_currency text[] := no_texts; w_key text[] := no_texts; w_model text[] := no_texts; w_kind text[] := no_texts;
  w_month date[] := array_fill(null::date, array[cardinality(p_ref)]);
  -- The accounts and keys that something was written for, and the rows of closed holds.
  a int := 0; a_tid tid[]; a_amount bigint[]; a_held bigint[]; a_entries bigint[];
  k int := 0; k_tid tid[]; k_id text[]; k_month date[]; k_spent bigint[]; k_held bigint[];
  closed_tid tid[];
  -- The account and the key of the member at hand.
  m record;
  v_account text := '';
  v_touched boolean; v_amount bigint; v_held bigint; v_entries bigint;
  k_first int; k_at int;
  v_month date; v_spent bigint; v_key_held bigint;
  v_outcome text; v_available bigint; v_remaining bigint; v_charged bigint; v_change bigint;
  v_rows int; v_key_rows int;
begin
  outcome := no_texts; state := no_texts; charged := no_numbers; available := no_numbers; remaining := no_numbers;
  perform from balances where account_id = any (p_account) order by account_id for update;
  for m in
    select u.i, u.verb, u.account_id, u.ref, u.amount, u.beyond, coalesce(h.key_id, u.key_id) as key_id,
           b.ctid as b_tid, b.currency, b.amount as b_amount, b.held as b_held, b.entries,
           k.ctid as k_tid, k.limit_month, k.spent, k.held as k_held, greatest(k.month, month_of(p_now)) as month,
           k.month as k_month, h.ctid as h_tid, h.amount as hold, h.model, h.kind, e.type as booked, e.charged
      from unnest(p_verb, p_account, p_key, p_ref, p_amount, p_beyond)
             with ordinality u (verb, account_id, key_id, ref, amount, beyond, i)
      left join lateral (select ctid, * from balances b where b.account_id = u.account_id offset 0) b on true
      left join lateral (select ctid, * from open_holds h
        where u.verb = 'close' and h.account_id = u.account_id and h.ref = u.ref offset 0) h on true
      left join lateral (select ctid, * from budgets k
        where k.key_id = coalesce(h.key_id, u.key_id) and k.account_id = u.account_id offset 0) k on true
      left join lateral (select type, revenue + loss as charged from ledger_entries e
        where h.ref is null and e.ref = u.ref and e.event = u.verb and e.account_id is not distinct from u.account_id
        offset 0) e on true
      order by u.account_id, u.i
  loop
    if m.b_tid is null or m.k_tid is null and (m.verb = 'hold' or m.h_tid is not null) then
      raise exception 'there is no account % with a key %', m.account_id, m.key_id using errcode = 'foreign_key_violation';
    elsif m.amount < 0 or m.amount is null and m.verb = 'hold' or m.amount > 1000000000000000 and m.verb = 'close' then
      raise exception 'a % of % is not an amount', m.verb, m.amount using errcode = 'numeric_value_out_of_range';
    end if;
    if m.account_id <> v_account then
      v_account := m.account_id;
      v_touched := false;
      v_amount := m.b_amount;
      v_held := m.b_held;
      v_entries := m.entries;
      k_first := k + 1;
    end if;
    k_at := k_first;
    while k_at <= k and k_id[k_at] <> m.key_id loop
      k_at := k_at + 1;
    end loop;
    if k_at <= k then
      v_month := k_month[k_at];
      v_spent := k_spent[k_at];
      v_key_held := k_held[k_at];
    else
      v_month := m.month;
      v_spent := case when m.k_month < m.month then 0 else m.spent end;
      v_key_held := m.k_held;
    end if;

    v_available := v_amount - v_held;
    v_charged := 0;
    if m.verb = 'hold' then
      v_remaining := m.limit_month - v_spent - v_key_held;
      v_outcome := case
        when m.booked is not null then 'exists'
        when v_available < m.amount then 'insufficient'
        when v_remaining < m.amount then 'over_limit'
        else 'held' end;
      if v_outcome = 'held' then
        v_change := m.amount;
        remaining[m.i] := v_remaining - v_change;
      else
        v_change := null;
        remaining[m.i] := v_remaining;
      end if;
    elsif m.h_tid is null then
      v_outcome := 'closed';
      v_change := null;
      state[m.i] := case m.booked when 'settle' then 'settled' when 'release' then 'released' end;
      charged[m.i] := m.charged;
    else
      v_outcome := case when m.amount is null then 'released' else 'settled' end;
      v_change := -m.hold;
      v_charged := least(coalesce(m.amount, 0), m.hold + case when m.beyond then v_available else 0 end);
      state[m.i] := v_outcome;
      charged[m.i] := v_charged;
      closed_tid := closed_tid || m.h_tid;
      w_model[m.i] := m.model;
      w_kind[m.i] := m.kind;
    end if;
    outcome[m.i] := v_outcome;
    if v_change is null then
      available[m.i] := v_available;
      continue;
    end if;

    if not v_touched then
      v_touched := true;
      a := a + 1;
      a_tid[a] := m.b_tid;
    end if;
    v_amount := v_amount - v_charged;
    v_held := v_held + v_change;
    v_entries := v_entries + 1;
    a_amount[a] := v_amount;
    a_held[a] := v_held;
    a_entries[a] := v_entries;
    if k_at > k then
      k := k_at;
      k_id[k] := m.key_id;
      k_tid[k] := m.k_tid;
      k_month[k] := v_month;
    end if;
    k_spent[k_at] := v_spent + v_charged;
    k_held[k_at] := v_key_held + v_change;
    available[m.i] := v_amount - v_held;
    w_number[m.i] := v_entries;
    w_held[m.i] := v_change;
    w_held_after[m.i] := v_held;
    w_currency[m.i] := m.currency;
    w_key[m.i] := m.key_id;
    w_month[m.i] := v_month;
  end loop;

  update balances b set amount = n.amount, held = n.held, entries = n.entries
    from unnest(a_tid, a_amount, a_held, a_entries) n (tid, amount, held, entries) where b.ctid = n.tid;
  get diagnostics v_rows = row_count;
  update budgets k set month = n.month, spent = n.spent, held = n.held
    from unnest(k_tid, k_month, k_spent, k_held) n (tid, month, spent, held) where k.ctid = n.tid;
  get diagnostics v_key_rows = row_count;
  if v_rows <> a or v_key_rows <> k then -- somebody wrote to the tables by hand, without the account's lock
    raise exception 'a balance or budget was changed without the lock of its account' using errcode = 'serialization_failure';
  end if;
  delete from open_holds where ctid = any (closed_tid);
  insert into open_holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at)
    select n.account_id, n.ref, n.key_id, n.amount, n.model, n.kind, p_now, n.expires
      from unnest(outcome, p_account, p_ref, p_key, p_amount, p_model, p_kind, p_expires)
             n (outcome, account_id, ref, key_id, amount, model, kind, expires)
      where n.outcome = 'held';
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at)
    select n.account_id, n.number, case n.outcome when 'held' then 'hold' when 'settled' then 'settle' else 'release' end,
        n.ref, n.verb, n.currency, -n.held - coalesce(n.charged, 0), n.held,
        case n.outcome when 'settled' then n.amount else 0 end,
        case n.outcome when 'settled' then n.charged - n.amount else 0 end,
        n.available, n.held_after, n.key_id, coalesce(n.hold_model, n.model), coalesce(n.hold_kind, n.kind),
        case n.outcome when 'settled' then n.units end, n.month, p_now
      from unnest(outcome, p_verb, p_account, p_ref, p_amount, p_model, p_kind, p_units, charged, available,
                  w_number, w_currency, w_held, w_held_after, w_key, w_model, w_kind, w_month)
             n (outcome, verb, account_id, ref, amount, model, kind, units, charged, available,
                number, currency, held, held_after, key_id, hold_model, hold_kind, month)
      where n.number is not null;
end $$;
