-- Holds that were pledged before they were written (docs/decisions/0024): a node answers `held` out of what it knows
-- of an account, and books the hold and its end together when the call has ended.

-- To keep a pledge: holds p_pledge for p_ref and ends the hold at once, as money_hold and money_close would do one
-- after the other; but what the account no longer has is not held, and no limit refuses what was pledged. If the
-- hold was written meanwhile, that one is ended. outcome, state and charged as money_close answers them, remaining as
-- money_hold does.
-- room: money
create function money_keep(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_pledge bigint, p_model text, p_kind text,
  p_cost bigint, p_beyond boolean, p_units jsonb, p_upstream jsonb,
  out outcome text, out state text, out charged bigint, out available bigint, out remaining bigint
) language plpgsql set enable_seqscan = off as $$
declare
  b balances;
  k budgets;
  v_key text;
  v_hold bigint;
begin
  select * into b from balances where account_id = p_account for update;
  select * into k from budgets where key_id = p_key and account_id = p_account;
  if b.account_id is null or k.key_id is null then
    raise exception 'there is no account % with a key %', p_account, p_key using errcode = 'foreign_key_violation';
  elsif p_pledge is null or p_pledge < 0 then
    raise exception 'a pledge of % is not an amount', p_pledge using errcode = 'numeric_value_out_of_range';
  elsif p_cost not between 0 and 1000000000000000 then
    raise exception 'a cost of % is not an amount', p_cost using errcode = 'numeric_value_out_of_range';
  end if;
  if exists (select from ledger_entries where ref = p_ref and event = 'hold' and account_id is not distinct from p_account) then
    v_key := coalesce((select key_id from open_holds where account_id = p_account and ref = p_ref), p_key);
    select c.outcome, c.state, c.charged, c.available into outcome, state, charged, available
      from money_close(p_now, p_account, p_ref, p_cost, p_beyond, p_units, p_upstream) c;
    select limit_month - case when month < month_of(p_now) then 0 else spent end - held into remaining
      from budgets where key_id = v_key;
    return;
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  v_hold := least(p_pledge, b.amount - b.held);
  outcome := case when p_cost is null then 'released' else 'settled' end;
  state := outcome;
  charged := least(coalesce(p_cost, 0), case when p_beyond then b.amount - b.held else v_hold end);
  available := b.amount - b.held - charged;
  remaining := k.limit_month - k.spent - charged - k.held;
  update balances set amount = b.amount - charged, entries = b.entries + 2 where account_id = p_account;
  update budgets set month = k.month, spent = k.spent + charged where key_id = p_key;
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

-- As in 0037_cheaper_money.sql, and with a third verb: `keep` is money_keep, with the cost in p_amount (null to release)
-- and what was pledged in p_pledge.
drop function money_batch;
-- room: money
create function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[],
  p_upstream jsonb[] default null, p_pledge bigint[] default null,
  out outcome text[], out state text[], out charged bigint[], out available bigint[], out remaining bigint[]
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
  -- The keys that something was written for.
  k int := 0; k_tid tid[]; k_id text[]; k_month date[]; k_spent bigint[]; k_held bigint[];
  repeated boolean; -- some member asks for a hold, or keeps a pledge, that was booked before
  -- The account and the key of the member at hand.
  m record;
  v_account text;
  v_currency text; v_available bigint; v_held bigint; v_entries bigint;
  k_first int; k_at int;
  v_month date; v_spent bigint; v_key_held bigint;
  v_outcome text; v_remaining bigint; v_charged bigint;
  v_hold bigint; v_upstream jsonb; v_owed bigint; v_basis text;
  is_new boolean; -- nothing was written for this member before
  v_rows int; v_key_rows int;
begin
  outcome := no_texts; state := no_texts; charged := no_numbers; available := no_numbers; remaining := no_numbers;
  select array_agg(tid), array_agg(account_id), array_agg(currency), array_agg(amount), array_agg(held),
         array_agg(entries)
    into a_tid, a_id, a_currency, a_amount, a_held, a_entries
    from (select ctid as tid, * from balances where account_id = any (p_account) order by account_id for update) b;
  repeated := exists (select from ledger_entries e where e.event = 'hold'
    and e.ref = any (array(
      select u.ref from (select unnest(p_verb) as verb, unnest(p_ref) as ref) u where u.verb <> 'close')));
  for m in
    select u.i, u.verb, u.account_id, u.ref, u.amount, u.beyond, coalesce(h.key_id, u.key_id) as key_id,
           k.ctid as k_tid, k.limit_month, k.spent, k.held as k_held, k.month as k_month,
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
    k_at := k_first;
    while k_at <= k and k_id[k_at] <> m.key_id loop
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
    is_new := m.h_tid is null;
    if is_new and repeated and m.verb <> 'close' then
      perform from ledger_entries e
        where e.ref = m.ref and e.event = 'hold' and e.account_id is not distinct from m.account_id;
      is_new := not found;
    end if;

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
        || row(m.account_id, m.ref, m.key_id, m.amount, p_model[m.i], p_kind[m.i], p_now, p_expires[m.i])::open_holds;
    elsif m.h_tid is null and not (m.verb = 'keep' and is_new) then
      outcome[m.i] := 'closed';
      available[m.i] := v_available;
      remaining[m.i] := v_remaining;
      select case type when 'settle' then 'settled' else 'released' end, revenue + loss into v_outcome, v_charged
        from ledger_entries e
        where e.ref = m.ref and e.event = 'close' and e.account_id is not distinct from m.account_id;
      state[m.i] := v_outcome;
      charged[m.i] := v_charged;
      continue;
    else
      if m.h_tid is null then -- a pledge: its hold is booked now
        v_hold := least(p_pledge[m.i], v_available);
        v_available := v_available - v_hold;
        v_entries := v_entries + 1;
        n := n + 1;
        entry := entry || row(m.account_id, v_entries, 'hold', m.ref, 'hold', v_currency, -v_hold, v_hold, 0, 0, 0, 0,
          v_available, v_held + v_hold, m.key_id, p_model[m.i], p_kind[m.i], null, null, v_month, p_now,
          null, null, 0, 0, null, null, null, 0)::ledger_entries;
      else
        v_hold := m.hold;
        v_held := v_held - v_hold;
        v_key_held := v_key_held - v_hold;
        closed_tid := closed_tid || m.h_tid;
      end if;
      v_outcome := case when m.amount is null then 'released' else 'settled' end;
      outcome[m.i] := v_outcome;
      state[m.i] := v_outcome;
      v_charged := least(coalesce(m.amount, 0), v_hold + case when m.beyond then v_available else 0 end);
      charged[m.i] := v_charged;
      v_available := v_available + v_hold - v_charged;
      v_entries := v_entries + 1;
      v_spent := v_spent + v_charged;
      remaining[m.i] := m.limit_month - v_spent - v_key_held;
      v_upstream := p_upstream[m.i];
      v_owed := coalesce((v_upstream ->> 'cost')::bigint, 0);
      v_basis := v_upstream ->> 'basis';
      n := n + 1;
      entry := entry || row(m.account_id, v_entries, case when m.amount is null then 'release' else 'settle' end,
        m.ref, 'close', v_currency, v_hold - v_charged, -v_hold, 0, coalesce(m.amount, 0),
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
      k_id[k] := m.key_id;
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

-- As in 0001_money.sql; and whoever pledges money hears of a withdrawal and of a new limit, in the commit that makes
-- them true. These are deeds of operators: that a NOTIFY makes commits wait for each other is nothing to them.
-- room: money
create or replace function money_credit(
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
    if p_amount < 0 then
      perform pg_notify('money_changed', p_account);
    end if;
  end if;
end $$;

-- room: money
create or replace function money_limit(p_key text, p_limit bigint) returns boolean language plpgsql set enable_seqscan = off as $$
begin
  perform from balances b join budgets k using (account_id) where k.key_id = p_key for update of b;
  update budgets set limit_month = p_limit where key_id = p_key;
  perform pg_notify('money_changed', account_id) from budgets where key_id = p_key;
  return found;
end $$;
