-- Holds what a node has reserved for a call, and ends the hold at once, as hold_money and close_hold would: p_call has
-- what both take, with reserved as the amount of the hold, and node_id, which has leased it. What the account no longer
-- has, or the key may no longer spend by its limit and its hard budgets, is not held. Locks the account's balance.
-- Returns outcome, state and charged as close_hold does, remaining as hold_money.
--
-- If the hold was written meanwhile, that one is ended.
create or replace function commit_hold(
  p_now timestamptz, p_call jsonb,
  out outcome text, out state text, out charged bigint, out available bigint, out remaining bigint, out upstream bigint
) language plpgsql set enable_seqscan = off as $$
declare
  c record;
  b balances;
  k budgets;
  v_key text;
  v_hold bigint;
  v_free bigint; -- what the account has and its key may spend
  v_key_free bigint;
  v_reserved bigint; -- the same for what was reserved
  v_owed bigint;
  v_budgets text[]; -- hard ones that the key counts in
  v_room bigint; -- what is left of them
begin
  select * into c from jsonb_to_record(p_call) as x (account_id text, key_id text, ref text, reserved bigint, exposed bigint, model text,
    kind text, cost bigint, beyond_hold boolean, units jsonb, upstream jsonb, node_id text, end_model text);
  select * into b from balances where account_id = c.account_id for update;
  select * into k from budgets where key_id = c.key_id and account_id = c.account_id;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
  if b.account_id is null or k.key_id is null then
    raise exception 'there is no account % with a key %', c.account_id, c.key_id using errcode = 'foreign_key_violation';
  elsif c.reserved is null or c.reserved < 0 then
    raise exception 'a hold of % is not an amount', c.reserved using errcode = 'numeric_value_out_of_range';
  elsif c.cost not between 0 and 1000000000000000 then
    raise exception 'a cost of % is not an amount', c.cost using errcode = 'numeric_value_out_of_range';
  end if;
  select key_id into v_key from ledger_entries
    where ref = c.ref and event = 'hold' and account_id is not distinct from c.account_id;
  if found then
    select e.outcome, e.state, e.charged, e.available, e.upstream into outcome, state, charged, available, upstream
      from close_hold(p_now, p_call) e;
    select limit_month - case when month < month_of(p_now) then 0 else spent end - held - exposed into remaining
      from budgets where key_id = case when v_key = c.key_id then k.key_id
        else (select coalesce(shares, key_id) from budgets where key_id = v_key) end;
    if b.hard_budgets > 0 then
      select least(remaining, room) into remaining from budget_room(c.account_id, k.project_id, k.key_id, k.member_id);
    end if;
    return;
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  v_free := b.amount - b.held - b.exposed;
  v_key_free := k.limit_month - k.spent - k.held - k.exposed;
  v_reserved := least(v_free, v_key_free);
  if has_others(c.node_id, now()) then
    select least(v_free - m.others - m.lost, v_key_free - l.others - l.lost),
           least(lease_share(v_free - m.lost, m.own, m.others), lease_share(v_key_free - l.lost, l.own, l.others))
      into v_free, v_reserved
      from lease_state(c.account_id, 'money', c.node_id, now()) m,
           lease_state(c.account_id, 'limit ' || k.key_id, c.node_id, now()) l;
  else
    v_free := v_reserved;
  end if;
  if b.hard_budgets > 0 then
    perform begin_periods(c.account_id, p_now, b.entries);
    select ids, room into v_budgets, v_room from budget_room(c.account_id, k.project_id, k.key_id, k.member_id);
    v_free := least(v_free, v_room);
    v_reserved := least(v_reserved, v_room);
  end if;
  v_free := greatest(v_free, least(v_reserved, c.reserved + coalesce(c.exposed, 0)), 0);
  v_hold := least(c.reserved, v_free);
  outcome := case when c.cost is null then 'released' else 'settled' end;
  state := outcome;
  charged := least(coalesce(c.cost, 0), case when c.beyond_hold then v_free else v_hold end);
  v_owed := coalesce((c.upstream ->> 'cost')::bigint, 0);
  upstream := case when c.upstream ->> 'basis' <> 'unknown' then v_owed end;
  available := b.amount - b.held - b.exposed - charged;
  remaining := least(k.limit_month - k.spent - charged - k.held - k.exposed, v_room - charged);
  perform count_in_budgets(v_budgets, charged, 0, 0);
  update balances set amount = b.amount - charged, entries = b.entries + 2 where account_id = c.account_id;
  update budgets set month = k.month, spent = k.spent + charged where key_id = k.key_id;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown,
      project_id)
    values (c.account_id, b.entries + 1, 'hold', c.ref, 'hold', b.currency, -v_hold, v_hold, 0, 0,
      b.amount - b.held - v_hold, b.held + v_hold, c.key_id, c.model, c.kind, null, k.month, p_now,
      null, null, 0, 0, null, null, null, 0, k.project_id),
    (c.account_id, b.entries + 2, case outcome when 'settled' then 'settle' else 'release' end, c.ref, 'close',
      b.currency, v_hold - charged, -v_hold, coalesce(c.cost, 0), charged - coalesce(c.cost, 0),
      b.amount - b.held - charged, b.held, c.key_id, coalesce(c.end_model, c.model), c.kind,
      case outcome when 'settled' then c.units end, k.month, p_now,
      c.upstream ->> 'provider', c.upstream ->> 'route', v_owed, -v_owed,
      c.upstream ->> 'basis', (c.upstream ->> 'base')::bigint, c.upstream ->> 'currency',
      case c.upstream ->> 'basis' when 'unknown' then 1 else 0 end, k.project_id);
end $$;
