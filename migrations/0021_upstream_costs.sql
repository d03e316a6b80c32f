-- What upstreams charge us, in the ledger: beside the customer's money of the run or call, in the same row, since
-- both end in the same moment (docs/decisions/0017). Two more books: upstream_cost, and upstream_owed, which the
-- provider's invoice will ask for; their legs add up to nothing by themselves.

alter table ledger_entries
  add column provider text,
  add column route text,
  add column upstream_cost bigint not null default 0, -- in the currency of the account, by the rate frozen for it
  add column upstream_owed bigint not null default 0,
  add column upstream_basis text, -- told rows counted free unknown stopped; null: no upstream had it
  add column upstream_base bigint, -- the same cost in the base currency of that time
  add column base_currency text,
  add column upstream_unknown smallint not null default 0; -- 1: it may have cost something; -1: it did not after all

-- What must hold of each entry, now with entries of type `upstream`: what an upstream has or may have charged
-- apart from the end of the customer's money. Replaced in place: no entry that is there has to be read again.
-- room: money
create or replace function is_sound(r ledger_entries) returns boolean immutable language plpgsql as $$
begin
  return r.available + r.held + r.topup_source + r.revenue + r.loss + r.adjust = 0
    and r.upstream_cost + r.upstream_owed = 0
    and case r.type -- which books a movement may touch, and in which direction
      when 'topup' then r.available > 0 and r.held = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'hold' then r.held >= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'settle' then r.held <= 0 and r.topup_source = 0 and r.revenue >= 0 and r.loss <= 0 and r.adjust = 0
        and r.revenue + r.loss >= 0
      when 'release' then r.held <= 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0 and r.adjust = 0
      when 'adjustment' then r.available <> 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0
      when 'upstream' then r.available = 0 and r.held = 0 and r.topup_source = 0 and r.revenue = 0 and r.loss = 0
        and r.adjust = 0 and r.upstream_basis is not null
      else false end
    and case -- what is known of the upstream's charge
      when r.upstream_basis is null then r.upstream_cost = 0 and r.upstream_unknown = 0 and r.upstream_base is null
        and r.provider is null and r.route is null
      when r.type not in ('settle', 'release', 'upstream') or r.provider is null or r.route is null then false
      when r.upstream_basis in ('unknown', 'stopped') then r.upstream_cost = 0 and r.upstream_base is null
        and r.upstream_unknown = case r.upstream_basis when 'unknown' then 1 else -1 end
      when r.upstream_basis in ('told', 'rows', 'counted', 'free') then r.upstream_cost between 0 and 1000000000000000
        and coalesce(r.upstream_base between 0 and 1000000000000000, false) and r.base_currency is not null
        and r.upstream_unknown = 0
      else false end
    and r.available_after >= 0 and r.held_after >= 0 and r.number >= 1
    and case r.type when 'upstream' then r.event like 'upstream _%'
      else r.event = case when r.type in ('settle', 'release') then 'close' else r.type end end
    and length(r.ref) between 1 and 255
    and case when r.type in ('topup', 'adjustment') then r.key_id is null and r.reason is not null
      when r.type = 'upstream' then r.key_id is null and r.model is not null and r.kind is not null and r.reason is null
      else r.key_id is not null and r.model is not null and r.kind is not null and r.reason is null end
    and (r.units is null or r.type = 'settle')
    and r.month = date_trunc('month', r.month::timestamp)
    and r.month >= date_trunc('month', r.created_at at time zone 'UTC');
end $$;

-- Notes what an upstream may have charged for a try that did not end the customer's money (`unknown`), or that it
-- did not after all (`stopped`). p_number: of the try; once per try and basis.
-- room: money
create function money_upstream(
  p_now timestamptz, p_account text, p_ref text, p_number text, p_provider text, p_route text, p_model text, p_kind text,
  p_basis text
) returns void language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  v_event constant text := 'upstream ' || p_number || case p_basis when 'stopped' then ' stopped' else '' end;
begin
  select * into b from balances where account_id = p_account for update;
  if b.account_id is null then
    raise exception 'there is no account %', p_account using errcode = 'foreign_key_violation';
  elsif exists (select from ledger_entries e where e.ref = p_ref and e.event = v_event and e.account_id is not distinct from p_account) then
    return;
  end if;
  update balances set entries = b.entries + 1 where account_id = p_account;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, available_after, held_after,
      model, kind, month, created_at, provider, route, upstream_basis, upstream_unknown)
    values (p_account, b.entries + 1, 'upstream', p_ref, v_event, b.currency, 0, 0, b.amount - b.held, b.held,
      p_model, p_kind, month_of(p_now), p_now, p_provider, p_route, p_basis, case p_basis when 'unknown' then 1 else -1 end);
end $$;

-- As in 0001_money.sql, and now with what the upstream charges: p_upstream {provider, route, basis} and, where it is
-- known, {cost, base, currency}.
drop function money_close;
-- room: money
create function money_close(
  p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb,
  p_upstream jsonb default null,
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
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown)
    values (p_account, b.entries + 1, case outcome when 'settled' then 'settle' else 'release' end, p_ref, 'close',
      b.currency, h.amount - charged, -h.amount, coalesce(p_cost, 0), charged - coalesce(p_cost, 0),
      available, b.held - h.amount, h.key_id, h.model, h.kind,
      case outcome when 'settled' then p_units end, k.month, p_now,
      p_upstream ->> 'provider', p_upstream ->> 'route', coalesce((p_upstream ->> 'cost')::bigint, 0), -coalesce((p_upstream ->> 'cost')::bigint, 0),
      p_upstream ->> 'basis', (p_upstream ->> 'base')::bigint, p_upstream ->> 'currency',
      case p_upstream ->> 'basis' when 'unknown' then 1 else 0 end);
end $$;

-- As in 0001_money.sql, and now with what the upstreams charge.
drop function money_batch;
-- room: money
create function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[],
  p_upstream jsonb[] default null,
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
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown)
    select n.account_id, n.number, case n.outcome when 'held' then 'hold' when 'settled' then 'settle' else 'release' end,
        n.ref, n.verb, n.currency, -n.held - coalesce(n.charged, 0), n.held,
        case n.outcome when 'settled' then n.amount else 0 end,
        case n.outcome when 'settled' then n.charged - n.amount else 0 end,
        n.available, n.held_after, n.key_id, coalesce(n.hold_model, n.model), coalesce(n.hold_kind, n.kind),
        case n.outcome when 'settled' then n.units end, n.month, p_now,
        n.upstream ->> 'provider', n.upstream ->> 'route', coalesce((n.upstream ->> 'cost')::bigint, 0), -coalesce((n.upstream ->> 'cost')::bigint, 0),
        n.upstream ->> 'basis', (n.upstream ->> 'base')::bigint, n.upstream ->> 'currency',
        case n.upstream ->> 'basis' when 'unknown' then 1 else 0 end
      from unnest(outcome, p_verb, p_account, p_ref, p_amount, p_model, p_kind, p_units, p_upstream, charged, available,
                  w_number, w_currency, w_held, w_held_after, w_key, w_model, w_kind, w_month)
             n (outcome, verb, account_id, ref, amount, model, kind, units, upstream, charged, available,
                number, currency, held, held_after, key_id, hold_model, hold_kind, month)
      where n.number is not null;
end $$;

alter table attempts add column upstream_amount bigint; -- as the ledger has it; null: unknown, or nothing was run
alter table chat_calls add column upstream_cost bigint; -- the same

-- As in 0003_tasks.sql; where nobody knows whether the upstream has the run, nobody knows what it charges.
-- room: tasks
create or replace function close_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_state text, p_reason text, p_message text,
  p_send_start boolean
) returns boolean language plpgsql as $$
declare
  closed record;
begin
  update attempts set state = p_state, reason = p_reason, message = p_message, ended_at = p_now
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
    returning provider, route into closed;
  if not found then
    return exists (select from attempts
      where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim
        and state = p_state and ended_at = p_now);
  end if;
  if p_state = 'ambiguous' then
    perform money_upstream(p_now, p_account, p_id, p_number::text, closed.provider, closed.route, t.model, t.kind, 'unknown')
      from tasks t where t.account_id = p_account and t.id = p_id;
  end if;
  if p_send_start then
    perform engine_send('task.start', jsonb_build_object('account_id', p_account, 'task_id', p_id), null, p_id);
  end if;
  return true;
end $$;

-- The upstream confirmed that a run which its task had left behind has stopped, unbilled.
-- room: tasks
create function stop_attempt(p_now timestamptz, p_account text, p_id text, p_number int) returns void language plpgsql as $$
declare
  stopped record;
begin
  update attempts set state = 'canceled'
    where account_id = p_account and task_id = p_id and number = p_number and state = 'abandoned'
    returning provider, route into stopped;
  if found and exists (select from ledger_entries e where e.ref = p_id and e.event = 'close'
      and e.account_id is not distinct from p_account and e.upstream_unknown = 1) then
    perform money_upstream(p_now, p_account, p_id, p_number::text, stopped.provider, stopped.route, t.model, t.kind, 'stopped')
      from tasks t where t.account_id = p_account and t.id = p_id;
  end if;
end $$;

drop function finish_task;
-- Ends a task as before, and now with what the upstream charges for the try that ends with it: p_upstream as
-- money_close takes it, without provider and route; null if that is not known.
-- room: tasks
create function finish_task(
  p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz,
  p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text,
  p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text,
  p_delivery jsonb, p_upstream jsonb default null
) returns text language plpgsql as $$
declare
  t record;
  tried record;
  used jsonb;
  closed record;
begin
  select started_at, completed_at, webhook_url into strict t from tasks where account_id = p_account and id = p_id for update;
  if t.completed_at is not null then
    return 'final';
  elsif t.started_at is distinct from p_seen_started_at then
    return 'changed';
  end if;
  select claim, provider, route into tried from attempts
    where account_id = p_account and task_id = p_id and ended_at is null for update;
  if p_claim is not null and p_claim <> coalesce(tried.claim, '') then
    return 'taken';
  end if;
  if tried.claim is not null and p_attempt_state <> 'not_started' then
    used := coalesce(p_upstream, '{"basis": "unknown"}') || jsonb_build_object('provider', tried.provider, 'route', tried.route);
  end if;
  update tasks set status = p_status, started_at = p_started_at, cost = p_cost, error_type = p_error_type,
      error_message = p_error_message, counts_as_failure = p_counts, body = p_body, files = p_files, completed_at = p_now
    where account_id = p_account and id = p_id;
  update attempts set state = p_attempt_state, reason = p_attempt_reason, message = p_error_message,
      upstream_cost = p_upstream_cost, upstream_amount = (used ->> 'cost')::bigint, ended_at = p_now
    where account_id = p_account and task_id = p_id and ended_at is null;
  select c.outcome, c.charged into closed
    from money_close(p_now, p_account, p_id, case p_status when 'succeeded' then p_measured end, false, p_units, used) c;
  if closed.outcome = 'closed' then
    raise exception 'task % is not final but its hold is closed', p_id;
  elsif closed.charged <> p_cost then
    raise exception 'task % costs % but % was charged', p_id, p_cost, closed.charged;
  end if;
  if t.webhook_url is not null then
    perform queue_delivery(p_now, p_account, p_delivery ->> 'id', p_id, 'task.' || p_status, t.webhook_url, p_body,
      p_delivery ->> 'lane', p_delivery ->> 'host');
  end if;
  return 'finished';
end $$;
