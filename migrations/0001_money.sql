-- Accounts, their keys, and all money. Amounts are bigint millionths of the account's currency.
-- Time comes in as p_now: money never reads the clock of the database, so months can be tested.

-- room: accounts
create table accounts (
  id text primary key,
  name text not null check (length(name) between 1 and 200),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'active' check (status in ('active', 'blocked')),
  webhook_secret text not null check (webhook_secret like 'whsec\_%'),
  created_at timestamptz not null
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
  deleted_at timestamptz
);
create index api_keys_of_account on api_keys (account_id, created_at);

-- One narrow row per account, rewritten by every movement; accounts are read on every request and
-- almost never written, so the two stand apart. Free room on the page keeps those rewrites HOT.
-- room: money
create table balances (
  account_id text primary key references accounts,
  currency text not null,
  amount bigint not null default 0,  -- available + held
  held bigint not null default 0,
  entries bigint not null default 0, -- number of the account's last ledger entry
  check (held >= 0),
  check (amount >= held)
) with (fillfactor = 50);

-- room: money
create table budgets (
  key_id text primary key references api_keys,
  account_id text not null references accounts,
  limit_month bigint check (limit_month >= 0), -- null: no limit
  month date not null check (extract(day from month) = 1),
  spent bigint not null default 0 check (spent >= 0), -- belongs to `month`
  held bigint not null default 0 check (held >= 0)    -- open holds count in the current month
) with (fillfactor = 50);

-- room: money
create table holds (
  account_id text not null references accounts,
  ref text not null, -- the task or the chat call it is for
  key_id text not null references api_keys,
  amount bigint not null check (amount >= 0),
  cost bigint,
  state text not null default 'open' check (state in ('open', 'settled', 'released')),
  model text not null,
  kind text not null,
  created_at timestamptz not null,
  expires_at timestamptz, -- chat only: a stream whose node died gives its money back
  closed_at timestamptz,
  primary key (account_id, ref),
  check ((state = 'open') = (closed_at is null)),
  check ((state = 'settled') = (cost is not null)),
  check (cost >= 0)
);
create index holds_open on holds (account_id, key_id) where state = 'open';
create index holds_expiring on holds (expires_at) where state = 'open' and expires_at is not null;

-- Double entry with one column per book instead of one row per leg: that the legs of a movement add
-- up to nothing is then a CHECK of the table (docs/decisions/0002). The balances of the system books
-- topup_source, revenue, loss and adjust are the sums of their columns.
-- room: money
create table ledger_entries (
  account_id text not null references accounts,
  number bigint not null, -- 1, 2, 3 … within the account, without gaps
  event_key text not null,
  type text not null check (type in ('topup', 'hold', 'settle', 'release', 'adjustment')),
  currency text not null,
  available bigint not null,
  held bigint not null,
  topup_source bigint not null default 0,
  revenue bigint not null default 0,
  loss bigint not null default 0,
  adjust bigint not null default 0,
  available_after bigint not null check (available_after >= 0),
  held_after bigint not null check (held_after >= 0),
  key_id text,
  ref text,
  model text,
  kind text,
  units jsonb,
  reason text,
  month date not null, -- the UTC month it counts in
  created_at timestamptz not null,
  primary key (account_id, number),
  unique (account_id, event_key), -- every movement happens once; settle and release share a key
  check (available + held + topup_source + revenue + loss + adjust = 0),
  check (case type
    when 'topup' then available > 0 and topup_source = -available and held = 0
    when 'hold' then held >= 0 and available = -held
    when 'settle' then held <= 0 and revenue >= 0 and loss <= 0
    when 'release' then held <= 0 and available = -held
    else adjust = -available and held = 0
  end)
);
create index ledger_entries_of_key on ledger_entries (account_id, key_id, month) where type = 'settle';
create index ledger_entries_by_time on ledger_entries (account_id, created_at);

-- How far `medley books` has recomputed each account; entries never change, so it goes on from here.
-- room: money
create table book_marks (
  account_id text primary key references accounts,
  number bigint not null,
  available bigint not null,
  held bigint not null,
  checked_at timestamptz not null
);

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

-- Reserves p_amount. outcome: held; exists (this ref has a hold already: nothing new happened);
-- insufficient (402); over_limit (403). Locks the balance, then the budget, as every money
-- function does, so no two of them can wait for each other in a circle.
-- room: money
create function money_hold(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_amount bigint,
  p_model text, p_kind text, p_expires timestamptz,
  out outcome text, out available bigint, out remaining bigint
) language plpgsql as $$
declare
  b balances;
  k budgets;
begin
  select * into strict b from balances where account_id = p_account for update;
  select * into strict k from budgets where key_id = p_key and account_id = p_account for update;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  available := b.amount - b.held;
  remaining := k.limit_month - k.spent - k.held;
  if exists (select from holds where account_id = p_account and ref = p_ref) then
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
    insert into holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at)
      values (p_account, p_ref, p_key, p_amount, p_model, p_kind, p_now, p_expires);
    insert into ledger_entries (account_id, number, event_key, type, currency, available, held,
        available_after, held_after, key_id, ref, model, kind, month, created_at)
      values (p_account, b.entries + 1, 'hold:' || p_ref, 'hold', b.currency, -p_amount, p_amount,
        available, b.held + p_amount, p_key, p_ref, p_model, p_kind, k.month, p_now);
  end if;
end $$;

-- Closes an open hold, once: settled at p_cost, or released when p_cost is null. What the hold does
-- not cover is charged to what is available if p_beyond, else it is the operator's loss. outcome:
-- settled, released, or closed (it was closed before, or never was: nothing happened).
-- room: money
create function money_close(
  p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb,
  out outcome text, out charged bigint, out available bigint
) language plpgsql as $$
declare
  b balances;
  h holds;
  k budgets;
begin
  select * into strict b from balances where account_id = p_account for update;
  select * into h from holds where account_id = p_account and ref = p_ref and state = 'open';
  available := b.amount - b.held;
  if h.ref is null then
    outcome := 'closed';
    return;
  end if;
  select * into strict k from budgets where key_id = h.key_id for update;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  outcome := case when p_cost is null then 'released' else 'settled' end;
  charged := least(coalesce(p_cost, 0), h.amount + case when p_beyond then available else 0 end);
  available := available + h.amount - charged;
  update balances set amount = b.amount - charged, held = b.held - h.amount, entries = b.entries + 1
    where account_id = p_account;
  update budgets set month = k.month, spent = k.spent + charged, held = k.held - h.amount where key_id = h.key_id;
  update holds set state = outcome, cost = case when p_cost is null then null else charged end, closed_at = p_now
    where account_id = p_account and ref = p_ref;
  insert into ledger_entries (account_id, number, event_key, type, currency, available, held, revenue, loss,
      available_after, held_after, key_id, ref, model, kind, units, month, created_at)
    values (p_account, b.entries + 1, 'settle:' || p_ref, case outcome when 'settled' then 'settle' else 'release' end,
      b.currency, h.amount - charged, -h.amount, coalesce(p_cost, 0), charged - coalesce(p_cost, 0),
      available, b.held - h.amount, h.key_id, p_ref, h.model, h.kind, p_units, k.month, p_now);
end $$;

-- Money in by a top-up (p_amount > 0), or a correction by the operator (either sign, never below
-- what is available). outcome: booked, exists (p_event_key happened already), insufficient.
-- room: money
create function money_credit(
  p_now timestamptz, p_account text, p_type text, p_amount bigint, p_event_key text, p_reason text,
  out outcome text, out available bigint
) language plpgsql as $$
declare
  b balances;
begin
  select * into strict b from balances where account_id = p_account for update;
  available := b.amount - b.held;
  if exists (select from ledger_entries where account_id = p_account and event_key = p_event_key) then
    outcome := 'exists';
  elsif available + p_amount < 0 then
    outcome := 'insufficient';
  else
    outcome := 'booked';
    available := available + p_amount;
    update balances set amount = b.amount + p_amount, entries = b.entries + 1 where account_id = p_account;
    insert into ledger_entries (account_id, number, event_key, type, currency, available, held, topup_source, adjust,
        available_after, held_after, ref, reason, month, created_at)
      values (p_account, b.entries + 1, p_event_key, p_type, b.currency, p_amount, 0,
        case p_type when 'topup' then -p_amount else 0 end, case p_type when 'topup' then 0 else -p_amount end,
        available, b.held, split_part(p_event_key, ':', 2), p_reason, month_of(p_now), p_now);
  end if;
end $$;

-- money_hold and money_close for many callers in one round trip. Member i holds (p_verb 'hold') or
-- closes ('close', p_amount null to release). Balances, then budgets are locked in id order; the
-- members are walked with running remainders, so a refused one does not count against those after
-- it; then everything is written set-based. Two members must not have the same account and ref.
-- An account or key that is not there answers 'missing' for its member only.
-- room: money
create function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[]
) returns table (outcome text[], charged bigint[], available bigint[], remaining bigint[]) language plpgsql as $$
#variable_conflict use_column
declare
  a_id text[]; a_currency text[]; a_amount bigint[]; a_held bigint[]; a_entries bigint[]; a_touched boolean[];
  k_id text[]; k_account text[]; k_limit bigint[]; k_month date[]; k_spent bigint[]; k_held bigint[]; k_touched boolean[];
  m_number bigint[]; m_currency text[]; m_held_after bigint[]; m_month date[]; m_hold bigint[]; m_key text[];
  m record;
  v_month date := month_of(p_now);
  v_charged bigint;
begin
  select array_agg(account_id), array_agg(currency), array_agg(amount), array_agg(held), array_agg(entries),
         array_agg(false)
    into a_id, a_currency, a_amount, a_held, a_entries, a_touched
    from (select * from balances where account_id = any (p_account) order by account_id for update) b;
  select array_agg(key_id), array_agg(account_id), array_agg(limit_month), array_agg(greatest(month, v_month)),
         array_agg(case when month < v_month then 0 else spent end), array_agg(held), array_agg(false)
    into k_id, k_account, k_limit, k_month, k_spent, k_held, k_touched
    from (select * from budgets where key_id in (
        select unnest(p_key)
        union all
        select h.key_id from unnest(p_verb, p_account, p_ref) u (verb, account_id, ref)
          join holds h on h.account_id = u.account_id and h.ref = u.ref where u.verb = 'close')
      order by key_id for update) k;
  for m in
    select u.i, u.verb, u.amount, u.beyond, a.i as a, k.i as k, coalesce(h.key_id, u.key_id) as key_id,
           h.amount as hold_amount, h.state as hold_state, k_account[k.i] is distinct from u.account_id as foreign_key
      from unnest(p_verb, p_account, p_key, p_ref, p_amount, p_beyond)
             with ordinality u (verb, account_id, key_id, ref, amount, beyond, i)
      left join holds h on h.account_id = u.account_id and h.ref = u.ref
      left join unnest(a_id) with ordinality a (id, i) on a.id = u.account_id
      left join unnest(k_id) with ordinality k (id, i) on k.id = coalesce(h.key_id, u.key_id)
      order by u.i
  loop
    available[m.i] := a_amount[m.a] - a_held[m.a];
    remaining[m.i] := k_limit[m.k] - k_spent[m.k] - k_held[m.k];
    charged[m.i] := null;
    if m.verb = 'hold' then
      outcome[m.i] := case
        when m.a is null or m.k is null or m.foreign_key then 'missing'
        when m.hold_state is not null then 'exists'
        when available[m.i] < m.amount then 'insufficient'
        when remaining[m.i] < m.amount then 'over_limit'
        else 'held' end;
      continue when outcome[m.i] <> 'held';
      a_held[m.a] := a_held[m.a] + m.amount;
      k_held[m.k] := k_held[m.k] + m.amount;
      remaining[m.i] := remaining[m.i] - m.amount;
      m_hold[m.i] := m.amount;
    else
      outcome[m.i] := case
        when m.a is null then 'missing'
        when m.hold_state is distinct from 'open' then 'closed'
        when m.amount is null then 'released'
        else 'settled' end;
      continue when outcome[m.i] in ('missing', 'closed');
      v_charged := least(coalesce(m.amount, 0), m.hold_amount + case when m.beyond then available[m.i] else 0 end);
      a_amount[m.a] := a_amount[m.a] - v_charged;
      a_held[m.a] := a_held[m.a] - m.hold_amount;
      k_held[m.k] := k_held[m.k] - m.hold_amount;
      k_spent[m.k] := k_spent[m.k] + v_charged;
      charged[m.i] := v_charged;
      m_hold[m.i] := m.hold_amount;
    end if;
    a_entries[m.a] := a_entries[m.a] + 1;
    a_touched[m.a] := true;
    k_touched[m.k] := true;
    available[m.i] := a_amount[m.a] - a_held[m.a];
    m_number[m.i] := a_entries[m.a];
    m_currency[m.i] := a_currency[m.a];
    m_held_after[m.i] := a_held[m.a];
    m_month[m.i] := k_month[m.k];
    m_key[m.i] := m.key_id;
  end loop;

  update balances b set amount = n.amount, held = n.held, entries = n.entries
    from unnest(a_id, a_amount, a_held, a_entries, a_touched) n (account_id, amount, held, entries, touched)
    where b.account_id = n.account_id and n.touched;
  update budgets k set month = n.month, spent = n.spent, held = n.held
    from unnest(k_id, k_month, k_spent, k_held, k_touched) n (key_id, month, spent, held, touched)
    where k.key_id = n.key_id and n.touched;
  insert into holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at)
    select n.account_id, n.ref, n.key_id, n.amount, n.model, n.kind, p_now, n.expires
      from unnest(outcome, p_account, p_ref, p_key, p_amount, p_model, p_kind, p_expires)
             n (outcome, account_id, ref, key_id, amount, model, kind, expires)
      where n.outcome = 'held';
  with closed as (
    update holds h set state = n.outcome, cost = case n.outcome when 'settled' then n.charged end, closed_at = p_now
      from unnest(outcome, p_account, p_ref, charged) n (outcome, account_id, ref, charged)
      where n.outcome in ('settled', 'released') and h.account_id = n.account_id and h.ref = n.ref
      returning h.account_id, h.ref, h.model, h.kind
  )
  insert into ledger_entries (account_id, number, event_key, type, currency, available, held, revenue, loss,
      available_after, held_after, key_id, ref, model, kind, units, month, created_at)
    select n.account_id, n.number,
        case n.outcome when 'held' then 'hold:' else 'settle:' end || n.ref,
        case n.outcome when 'held' then 'hold' when 'settled' then 'settle' else 'release' end, n.currency,
        case n.outcome when 'held' then -n.hold else n.hold - n.charged end,
        case n.outcome when 'held' then n.hold else -n.hold end,
        case n.outcome when 'settled' then n.amount else 0 end,
        case n.outcome when 'settled' then n.charged - n.amount else 0 end,
        n.available, n.held_after, n.key_id, n.ref, coalesce(c.model, n.model), coalesce(c.kind, n.kind), n.units, n.month, p_now
      from unnest(outcome, p_account, p_ref, p_amount, p_model, p_kind, p_units, charged, available,
                  m_number, m_currency, m_held_after, m_month, m_hold, m_key)
             n (outcome, account_id, ref, amount, model, kind, units, charged, available,
                number, currency, held_after, month, hold, key_id)
      left join closed c on c.account_id = n.account_id and c.ref = n.ref
      where n.number is not null;
  return next;
end $$;
