-- What a call is charged: first from its hold, then from what is available, within the remaining limit of its key. Only
-- what neither covers is the operator's loss. So a key never spends more than its limit, an account never more than
-- its balance.

-- A key that was made by a rotation uses the budget of the key that it replaces: both spend, hold and are limited as
-- one. `shares` names the first key of them all; a row with it says nothing of its own.
--
-- A limit that is set below what was spent and held by then takes neither back. What stood when it was set remains the
-- bound until what was held has ended, and the month is over.
-- room: money
alter table budgets
  add column shares text references budgets,
  add column limited_month date,
  add column limited_spent bigint not null default 0, -- in `limited_month`
  add column limited_held bigint not null default 0;
update budgets set limited_month = month, limited_spent = spent, limited_held = held;

-- The node that answers for the hold: the sweep leaves it alone while that node is alive. Null: none does.
-- room: money
alter table open_holds add column node_id text;

-- As in 0001_money.sql, and: no key spends and holds more than its limit.
-- room: money
create or replace function is_sound(r budgets) returns boolean immutable language plpgsql as $$
begin
  if r.spent + r.held > r.limit_month
      and r.spent + r.held > r.limited_held + (case when r.month = r.limited_month then r.limited_spent else 0 end)
    or r.shares is not null and (r.spent <> 0 or r.held <> 0 or r.limit_month is not null) then
    return false;
  end if;
  return r.spent >= 0 and r.held >= 0 and coalesce(r.limit_month, 0) between 0 and 1000000000000000
    and r.month = date_trunc('month', r.month::timestamp);
end $$;

-- As in 0001_money.sql; but expires_at is a time of the database's clock, created_at one of a node's.
-- room: money
create or replace function is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.kind in ('chat', 'image', 'video', 'audio');
end $$;

-- As in 0037_cheaper_money.sql, and: a call whose hold was released, because its node was silent for too long, is
-- settled nevertheless when that node comes back. That settlement has nothing to take from a hold; its event is `late`.
-- room: money
create or replace function is_sound(r ledger_entries) returns boolean immutable language plpgsql as $$
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

-- There are few of them, and who reads holds looks for them.
create index ledger_entries_late on ledger_entries (account_id, ref) where event = 'late';

-- room: money
create or replace view holds as
  select account_id, ref, key_id, 'open' as state, amount, null::bigint as cost, model, kind, null::timestamptz as closed_at
    from open_holds
  union all
  select account_id, ref, key_id, 'settled', -held, revenue + loss, model, kind, created_at
    from ledger_entries where type = 'settle'
  union all
  select account_id, ref, key_id, 'released', -held, null, model, kind, created_at
    from ledger_entries e where type = 'release' and not exists (
      select from ledger_entries l where l.account_id = e.account_id and l.ref = e.ref and l.event = 'late');

-- As in 0001_money.sql, for a budget that may be shared, and with the node that answers for the hold.
drop function money_hold;
-- room: money
create function money_hold(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_amount bigint,
  p_model text, p_kind text, p_expires timestamptz, p_node text default null,
  out outcome text, out available bigint, out remaining bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  k budgets;
begin
  select * into b from balances where account_id = p_account for update;
  select * into k from budgets where key_id = p_key and account_id = p_account;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
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
    update budgets set month = k.month, spent = k.spent, held = k.held + p_amount where key_id = k.key_id;
    insert into open_holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at, node_id)
      values (p_account, p_ref, p_key, p_amount, p_model, p_kind, p_now, p_expires, p_node);
    insert into ledger_entries (account_id, number, type, ref, event, currency, available, held,
        available_after, held_after, key_id, model, kind, month, created_at)
      values (p_account, b.entries + 1, 'hold', p_ref, 'hold', b.currency, -p_amount, p_amount,
        available, b.held + p_amount, p_key, p_model, p_kind, k.month, p_now);
  end if;
end $$;

-- Closes an open hold, once: settled at p_cost, or released when p_cost is null. What exceeds the hold is charged to
-- what is available, within the key's limit, if p_beyond; the rest is the operator's loss. outcome: settled, released,
-- or closed: nothing happened now, because the hold was closed before (state, charged and upstream say how, as after a
-- lost answer) or never was (state is null). A hold that was released and is now to be settled with p_beyond is
-- settled out of what is available. upstream: what was booked as the upstream's charge; null if that is unknown.
drop function money_close;
-- room: money
create function money_close(
  p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb,
  p_upstream jsonb default null,
  out outcome text, out state text, out charged bigint, out available bigint, out upstream bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  h open_holds;
  k budgets;
  past ledger_entries;
  v_event text := 'close';
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
    select * into past from ledger_entries
      where ref = p_ref and event in ('close', 'late') and account_id is not distinct from p_account
      order by event desc limit 1;
    if past.type is distinct from 'release' or p_cost is null or not p_beyond then
      outcome := 'closed';
      state := case past.type when 'settle' then 'settled' when 'release' then 'released' end;
      charged := past.revenue + past.loss;
      upstream := case when past.upstream_base is not null then past.upstream_cost end;
      return;
    end if;
    v_event := 'late';
    h.key_id := past.key_id;
    h.amount := 0;
    h.model := past.model;
    h.kind := past.kind;
  end if;
  select * into strict k from budgets where key_id = h.key_id and account_id = p_account;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  outcome := case when p_cost is null then 'released' else 'settled' end;
  state := outcome;
  charged := least(coalesce(p_cost, 0), h.amount + case when p_beyond
    then greatest(least(available, k.limit_month - k.spent - k.held), 0) else 0 end);
  upstream := case when p_upstream ->> 'basis' <> 'unknown' then coalesce((p_upstream ->> 'cost')::bigint, 0) end;
  available := available + h.amount - charged;
  update balances set amount = b.amount - charged, held = b.held - h.amount, entries = b.entries + 1
    where account_id = p_account;
  update budgets set month = k.month, spent = k.spent + charged, held = k.held - h.amount where key_id = k.key_id;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown)
    values (p_account, b.entries + 1, case outcome when 'settled' then 'settle' else 'release' end, p_ref, v_event,
      b.currency, h.amount - charged, -h.amount, coalesce(p_cost, 0), charged - coalesce(p_cost, 0),
      available, b.held - h.amount, h.key_id, h.model, h.kind,
      case outcome when 'settled' then p_units end, k.month, p_now,
      p_upstream ->> 'provider', p_upstream ->> 'route', coalesce((p_upstream ->> 'cost')::bigint, 0), -coalesce((p_upstream ->> 'cost')::bigint, 0),
      p_upstream ->> 'basis', (p_upstream ->> 'base')::bigint, p_upstream ->> 'currency',
      case p_upstream ->> 'basis' when 'unknown' then 1 else 0 end);
end $$;

-- As in 0040_pledges.sql: holds p_pledge for p_ref and ends the hold at once; but what the account no longer has, or
-- the key may no longer spend, is not held.
drop function money_keep;
-- room: money
create function money_keep(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_pledge bigint, p_model text, p_kind text,
  p_cost bigint, p_beyond boolean, p_units jsonb, p_upstream jsonb,
  out outcome text, out state text, out charged bigint, out available bigint, out remaining bigint, out upstream bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  k budgets;
  v_key text;
  v_hold bigint;
  v_free bigint; -- what the account has and its key may spend
begin
  select * into b from balances where account_id = p_account for update;
  select * into k from budgets where key_id = p_key and account_id = p_account;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
  if b.account_id is null or k.key_id is null then
    raise exception 'there is no account % with a key %', p_account, p_key using errcode = 'foreign_key_violation';
  elsif p_pledge is null or p_pledge < 0 then
    raise exception 'a pledge of % is not an amount', p_pledge using errcode = 'numeric_value_out_of_range';
  elsif p_cost not between 0 and 1000000000000000 then
    raise exception 'a cost of % is not an amount', p_cost using errcode = 'numeric_value_out_of_range';
  end if;
  select key_id into v_key from ledger_entries
    where ref = p_ref and event = 'hold' and account_id is not distinct from p_account;
  if found then
    select c.outcome, c.state, c.charged, c.available, c.upstream into outcome, state, charged, available, upstream
      from money_close(p_now, p_account, p_ref, p_cost, p_beyond, p_units, p_upstream) c;
    select limit_month - case when month < month_of(p_now) then 0 else spent end - held into remaining
      from budgets where key_id = case when v_key = p_key then k.key_id
        else (select coalesce(shares, key_id) from budgets where key_id = v_key) end;
    return;
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  v_free := greatest(least(b.amount - b.held, k.limit_month - k.spent - k.held), 0);
  v_hold := least(p_pledge, v_free);
  outcome := case when p_cost is null then 'released' else 'settled' end;
  state := outcome;
  charged := least(coalesce(p_cost, 0), case when p_beyond then v_free else v_hold end);
  upstream := case when p_upstream ->> 'basis' <> 'unknown' then coalesce((p_upstream ->> 'cost')::bigint, 0) end;
  available := b.amount - b.held - charged;
  remaining := k.limit_month - k.spent - charged - k.held;
  update balances set amount = b.amount - charged, entries = b.entries + 2 where account_id = p_account;
  update budgets set month = k.month, spent = k.spent + charged where key_id = k.key_id;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown)
    values (p_account, b.entries + 1, 'hold', p_ref, 'hold', b.currency, -v_hold, v_hold, 0, 0,
      b.amount - b.held - v_hold, b.held + v_hold, p_key, p_model, p_kind, null, k.month, p_now,
      null, null, 0, 0, null, null, null, 0),
    (p_account, b.entries + 2, case outcome when 'settled' then 'settle' else 'release' end, p_ref, 'close',
      b.currency, v_hold - charged, -v_hold, coalesce(p_cost, 0), charged - coalesce(p_cost, 0),
      available, b.held, p_key, p_model, p_kind,
      case outcome when 'settled' then p_units end, k.month, p_now,
      p_upstream ->> 'provider', p_upstream ->> 'route',
      coalesce((p_upstream ->> 'cost')::bigint, 0), -coalesce((p_upstream ->> 'cost')::bigint, 0),
      p_upstream ->> 'basis', (p_upstream ->> 'base')::bigint, p_upstream ->> 'currency',
      case p_upstream ->> 'basis' when 'unknown' then 1 else 0 end);
end $$;

-- As in 0040_pledges.sql, with the same rules as the plain functions above.
drop function money_batch;
-- room: money
create function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[],
  p_upstream jsonb[] default null, p_pledge bigint[] default null, p_node text default null,
  out outcome text[], out state text[], out charged bigint[], out available bigint[], out remaining bigint[],
  out upstream bigint[]
) language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  no_numbers constant bigint[] := array_fill(null::bigint, array[cardinality(p_ref)]);
  no_texts constant text[] := array_fill(null::text, array[cardinality(p_ref)]);
  this_month constant date := month_of(p_now);
  -- What is written: the entries, the holds that open, and where those are that close.
  entry ledger_entries[]; n int := 0;
  opened open_holds[];
  closed_tid tid[];
  -- The accounts as they were locked, and which entry is the last of each.
  a int := 0; a_tid tid[]; a_id text[]; a_currency text[]; a_amount bigint[]; a_held bigint[]; a_entries bigint[];
  a_last int[] := array_fill(null::int, array[cardinality(p_ref)]);
  -- The budgets that something was written for.
  k int := 0; k_tid tid[]; k_id text[]; k_month date[]; k_spent bigint[]; k_held bigint[];
  repeated boolean; -- some member asks for a hold, or keeps a pledge, that was booked before
  -- The account and the key of the member at hand.
  m record;
  v_account text;
  v_currency text; v_available bigint; v_held bigint; v_entries bigint;
  k_first int; k_at int;
  v_month date; v_spent bigint; v_key_held bigint;
  v_outcome text; v_remaining bigint; v_charged bigint;
  v_hold bigint; v_free bigint; v_upstream jsonb; v_owed bigint; v_basis text;
  is_new boolean; -- nothing was written for this member before
  is_late boolean; -- its hold is gone, released by somebody who believed its call to be dead
  past ledger_entries; -- how it ended before
  v_budget text; -- the key whose budget is used
  v_rows int; v_key_rows int;
begin
  outcome := no_texts; state := no_texts; charged := no_numbers; available := no_numbers; remaining := no_numbers;
  upstream := no_numbers;
  select array_agg(tid), array_agg(account_id), array_agg(currency), array_agg(amount), array_agg(held),
         array_agg(entries)
    into a_tid, a_id, a_currency, a_amount, a_held, a_entries
    from (select ctid as tid, * from balances where account_id = any (p_account) order by account_id for update) b;
  repeated := exists (select from ledger_entries e where e.event = 'hold'
    and e.ref = any (array(
      select u.ref from (select unnest(p_verb) as verb, unnest(p_ref) as ref) u where u.verb <> 'close')));
  for m in
    select u.i, u.verb, u.account_id, u.ref, u.amount, u.beyond, coalesce(h.key_id, u.key_id) as key_id,
           k.ctid as k_tid, k.key_id as k_key, k.shares, k.limit_month, k.spent, k.held as k_held, k.month as k_month,
           h.ctid as h_tid, h.amount as hold, h.model, h.kind
      from (select generate_subscripts(p_ref, 1) as i, unnest(p_verb) as verb, unnest(p_account) as account_id,
                   unnest(p_key) as key_id, unnest(p_ref) as ref, unnest(p_amount) as amount,
                   unnest(p_beyond) as beyond) u
      left join lateral (select ctid, * from open_holds h
        where u.verb <> 'hold' and h.account_id = u.account_id and h.ref = u.ref offset 0) h on true
      left join lateral (select ctid, * from budgets k
        where k.key_id = coalesce(h.key_id, u.key_id) and k.account_id = u.account_id offset 0) k on true
      order by u.account_id, u.i
  loop
    if v_account is distinct from m.account_id then
      a := a + 1;
      v_account := case when a_id[a] = m.account_id then m.account_id end; -- null if there is none
      v_currency := a_currency[a];
      v_held := a_held[a];
      v_available := a_amount[a] - v_held;
      v_entries := a_entries[a];
      k_first := k + 1;
    end if;
    if v_account is null or m.k_tid is null and (m.verb <> 'close' or m.h_tid is not null) then
      raise exception 'there is no account % with a key %', m.account_id, m.key_id
        using errcode = 'foreign_key_violation';
    elsif m.amount < 0 or m.amount is null and m.verb = 'hold' or m.amount > 1000000000000000 and m.verb <> 'hold' then
      raise exception 'a % of % is not an amount', m.verb, m.amount using errcode = 'numeric_value_out_of_range';
    elsif m.verb = 'keep' and coalesce(p_pledge[m.i], -1) < 0 then
      raise exception 'a pledge of % is not an amount', p_pledge[m.i] using errcode = 'numeric_value_out_of_range';
    end if;
    is_new := m.h_tid is null;
    if is_new and repeated and m.verb <> 'close' then
      perform from ledger_entries e
        where e.ref = m.ref and e.event = 'hold' and e.account_id is not distinct from m.account_id;
      is_new := not found;
    end if;
    is_late := false;
    if m.h_tid is null and (m.verb = 'close' or m.verb = 'keep' and not is_new) then
      select * into past from ledger_entries e
        where e.ref = m.ref and e.event in ('close', 'late') and e.account_id is not distinct from m.account_id
        order by e.event desc limit 1;
      if past.type = 'release' and m.amount is not null and m.beyond then
        is_late := true;
        m.key_id := past.key_id;
        m.hold := 0;
        m.model := past.model;
        m.kind := past.kind;
      elsif past.key_id is not null then
        m.key_id := past.key_id;
      end if;
    end if;
    v_budget := coalesce(m.shares, m.key_id);
    if m.shares is not null or m.key_id is not null and m.k_key is distinct from m.key_id then
      select r.ctid, r.key_id, r.limit_month, r.spent, r.held, r.month
        into m.k_tid, v_budget, m.limit_month, m.spent, m.k_held, m.k_month
        from budgets s join budgets r on r.key_id = coalesce(s.shares, s.key_id)
        where s.key_id = m.key_id and s.account_id = m.account_id;
    end if;
    k_at := k_first;
    while k_at <= k and k_id[k_at] <> v_budget loop
      k_at := k_at + 1;
    end loop;
    if k_at <= k then
      v_month := k_month[k_at];
      v_spent := k_spent[k_at];
      v_key_held := k_held[k_at];
    else
      v_month := m.k_month;
      v_spent := m.spent;
      v_key_held := m.k_held;
      if v_month < this_month then
        v_month := this_month;
        v_spent := 0;
      end if;
    end if;

    v_remaining := m.limit_month - v_spent - v_key_held;
    if m.verb = 'hold' then
      v_outcome := case
        when not is_new then 'exists'
        when v_available < m.amount then 'insufficient'
        when v_remaining < m.amount then 'over_limit'
        else 'held' end;
      outcome[m.i] := v_outcome;
      if v_outcome <> 'held' then
        available[m.i] := v_available;
        remaining[m.i] := v_remaining;
        continue;
      end if;
      remaining[m.i] := v_remaining - m.amount;
      v_available := v_available - m.amount;
      v_held := v_held + m.amount;
      v_entries := v_entries + 1;
      v_key_held := v_key_held + m.amount;
      n := n + 1;
      entry := entry || row(m.account_id, v_entries, 'hold', m.ref, 'hold', v_currency, -m.amount, m.amount, 0, 0, 0, 0,
        v_available, v_held, m.key_id, p_model[m.i], p_kind[m.i], null, null, v_month, p_now,
        null, null, 0, 0, null, null, null, 0)::ledger_entries;
      opened := opened
        || row(m.account_id, m.ref, m.key_id, m.amount, p_model[m.i], p_kind[m.i], p_now, p_expires[m.i], p_node)::open_holds;
    elsif m.h_tid is null and not is_late and not (m.verb = 'keep' and is_new) then
      outcome[m.i] := 'closed';
      available[m.i] := v_available;
      remaining[m.i] := v_remaining;
      state[m.i] := case past.type when 'settle' then 'settled' when 'release' then 'released' end;
      charged[m.i] := past.revenue + past.loss;
      upstream[m.i] := case when past.upstream_base is not null then past.upstream_cost end;
      continue;
    else
      if is_late then
        v_hold := 0;
        v_free := v_remaining;
      elsif m.h_tid is null then -- a pledge: its hold is booked now
        v_hold := greatest(least(p_pledge[m.i], v_available, v_remaining), 0);
        v_free := v_remaining - v_hold;
        v_available := v_available - v_hold;
        v_entries := v_entries + 1;
        n := n + 1;
        entry := entry || row(m.account_id, v_entries, 'hold', m.ref, 'hold', v_currency, -v_hold, v_hold, 0, 0, 0, 0,
          v_available, v_held + v_hold, m.key_id, p_model[m.i], p_kind[m.i], null, null, v_month, p_now,
          null, null, 0, 0, null, null, null, 0)::ledger_entries;
      else
        v_hold := m.hold;
        v_free := v_remaining;
        v_held := v_held - v_hold;
        v_key_held := v_key_held - v_hold;
        closed_tid := closed_tid || m.h_tid;
      end if;
      v_outcome := case when m.amount is null then 'released' else 'settled' end;
      outcome[m.i] := v_outcome;
      state[m.i] := v_outcome;
      v_charged := least(coalesce(m.amount, 0), v_hold
        + case when m.beyond then greatest(least(v_available, v_free), 0) else 0 end);
      charged[m.i] := v_charged;
      v_available := v_available + v_hold - v_charged;
      v_entries := v_entries + 1;
      v_spent := v_spent + v_charged;
      remaining[m.i] := m.limit_month - v_spent - v_key_held;
      v_upstream := p_upstream[m.i];
      v_owed := coalesce((v_upstream ->> 'cost')::bigint, 0);
      v_basis := v_upstream ->> 'basis';
      upstream[m.i] := case when v_basis <> 'unknown' then v_owed end;
      n := n + 1;
      entry := entry || row(m.account_id, v_entries, case when m.amount is null then 'release' else 'settle' end,
        m.ref, case when is_late then 'late' else 'close' end, v_currency, v_hold - v_charged, -v_hold, 0, coalesce(m.amount, 0),
        v_charged - coalesce(m.amount, 0), 0,
        v_available, v_held, m.key_id, coalesce(m.model, p_model[m.i]), coalesce(m.kind, p_kind[m.i]),
        case when m.amount is not null then p_units[m.i] end, null,
        v_month, p_now, v_upstream ->> 'provider', v_upstream ->> 'route', v_owed, -v_owed, v_basis,
        (v_upstream ->> 'base')::bigint, v_upstream ->> 'currency',
        case v_basis when 'unknown' then 1 else 0 end)::ledger_entries;
    end if;
    available[m.i] := v_available;
    a_last[a] := n;
    if k_at > k then
      k := k_at;
      k_id[k] := v_budget;
      k_tid[k] := m.k_tid;
      k_month[k] := v_month;
    end if;
    k_spent[k_at] := v_spent;
    k_held[k_at] := v_key_held;
  end loop;

  update balances b
    set amount = (l.last).available_after + (l.last).held_after, held = (l.last).held_after, entries = (l.last).number
    from (select l.tid, entry[l.n] as last from (select unnest(a_tid) as tid, unnest(a_last) as n) l
      where l.n is not null offset 0) l
    where b.ctid = l.tid;
  get diagnostics v_rows = row_count;
  update budgets k set month = n.month, spent = n.spent, held = n.held
    from (select unnest(k_tid) as tid, unnest(k_month) as month, unnest(k_spent) as spent, unnest(k_held) as held) n
    where k.ctid = n.tid;
  get diagnostics v_key_rows = row_count;
  -- Else somebody wrote to the tables by hand, without the account's lock.
  if v_rows <> cardinality(array_remove(a_last, null)) or v_key_rows <> k then
    raise exception 'a balance or budget was changed without the lock of its account'
      using errcode = 'serialization_failure';
  end if;
  delete from open_holds where ctid = any (closed_tid);
  insert into open_holds select o.* from unnest(opened) o;
  insert into ledger_entries select e.* from unnest(entry) e;
end $$;

-- As in 0040_pledges.sql, for a budget that may be shared.
-- room: money
create or replace function money_limit(p_key text, p_limit bigint) returns boolean language plpgsql set enable_seqscan = off as $$
declare
  v_budget constant text := (select coalesce(shares, key_id) from budgets where key_id = p_key);
begin
  perform from balances b join budgets k using (account_id) where k.key_id = v_budget for update of b;
  update budgets set limit_month = p_limit, limited_month = month, limited_spent = spent, limited_held = held
    where key_id = v_budget;
  perform pg_notify('money_changed', account_id) from budgets where key_id = v_budget;
  return found;
end $$;
