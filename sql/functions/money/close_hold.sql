-- Closes an open hold, once: p_end has account_id, ref and cost (null: released), and may have units, upstream, node_id
-- and end_model: the model of the end, if it is not that of the hold. With beyond_hold, what exceeds the hold is charged
-- to what is available and not leased to others than node_id, within the key's limit and its hard budgets, else it is
-- the operator's loss. Locks the account's balance. Returns outcome settled or released; or closed: nothing happened
-- now, and state, charged and upstream say how the hold was closed before (state is null if there never was one).
--
-- A hold that was released and is now to be settled with beyond_hold is settled out of what is available. upstream is
-- what the upstream charges: {provider, route, basis} and, where it is known, {cost, base, currency}; the answer's
-- upstream is what was booked of it, null if that is unknown.
create or replace function close_hold(
  p_now timestamptz, p_end jsonb,
  out outcome text, out state text, out charged bigint, out available bigint, out upstream bigint
) language plpgsql set enable_seqscan = off as $$
declare
  e record;
  b balances;
  h open_holds;
  k budgets;
  past ledger_entries;
  v_event text := 'close';
  v_owed bigint;
  v_beyond bigint := 0;
  v_room bigint; -- what is left of the hard budgets that it counts in
begin
  select * into e from jsonb_to_record(p_end) as x (account_id text, ref text, cost bigint, beyond_hold boolean,
    units jsonb, upstream jsonb, node_id text, end_model text);
  select * into b from balances where account_id = e.account_id for update;
  if b.account_id is null then
    raise exception 'there is no account %', e.account_id using errcode = 'foreign_key_violation';
  elsif e.cost not between 0 and 1000000000000000 then
    raise exception 'a cost of % is not an amount', e.cost using errcode = 'numeric_value_out_of_range';
  end if;
  available := b.amount - b.held - b.exposed;
  delete from open_holds where account_id = e.account_id and ref = e.ref returning * into h;
  if h.ref is null then
    select * into past from ledger_entries
      where ref = e.ref and event in ('close', 'late') and account_id is not distinct from e.account_id
      order by event desc limit 1;
    if past.type is distinct from 'release' or e.cost is null or e.beyond_hold is not true then
      outcome := 'closed';
      state := case past.type when 'settle' then 'settled' when 'release' then 'released' end;
      charged := past.revenue + past.loss;
      upstream := case when past.upstream_base is not null then past.upstream_cost end;
      return;
    end if;
    v_event := 'late';
    h.key_id := past.key_id;
    h.amount := 0;
    h.exposed := 0;
    h.model := past.model;
    h.kind := past.kind;
    h.project_id := past.project_id;
  end if;
  select * into strict k from budgets where key_id = h.key_id and account_id = e.account_id;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  if b.hard_budgets > 0 then
    perform begin_periods(e.account_id, p_now, b.entries);
    if v_event = 'late' then
      select ids into h.budget_ids from budget_room(e.account_id, h.project_id, k.key_id, k.member_id);
    end if;
    select min(amount - spent - held - account_budgets.exposed) into v_room from account_budgets
      where id = any (h.budget_ids) and is_hard;
  end if;
  outcome := case when e.cost is null then 'released' else 'settled' end;
  state := outcome;
  if e.beyond_hold and e.cost > h.amount then
    v_beyond := greatest(0, least(
      available + h.exposed - (select others + lost from lease_state(e.account_id, 'money', e.node_id, now())),
      k.limit_month - k.spent - k.held - k.exposed + h.exposed
        - (select others + lost from lease_state(e.account_id, 'limit ' || k.key_id, e.node_id, now())),
      v_room + h.exposed));
  end if;
  charged := least(coalesce(e.cost, 0), h.amount + v_beyond);
  v_owed := coalesce((e.upstream ->> 'cost')::bigint, 0);
  upstream := case when e.upstream ->> 'basis' <> 'unknown' then v_owed end;
  available := available + h.amount + h.exposed - charged;
  update balances set amount = b.amount - charged, held = b.held - h.amount, exposed = b.exposed - h.exposed,
      entries = b.entries + 1
    where account_id = e.account_id;
  update budgets set month = k.month, spent = k.spent + charged, held = k.held - h.amount,
      exposed = k.exposed - h.exposed
    where key_id = k.key_id;
  if b.hard_budgets > 0 then
    perform count_in_budgets(h.budget_ids, charged, -h.amount, -h.exposed);
  end if;
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
      available_after, held_after, key_id, model, kind, units, month, created_at,
      provider, route, upstream_cost, upstream_owed, upstream_basis, upstream_base, base_currency, upstream_unknown,
      project_id)
    values (e.account_id, b.entries + 1, case outcome when 'settled' then 'settle' else 'release' end, e.ref, v_event,
      b.currency, h.amount - charged, -h.amount, coalesce(e.cost, 0), charged - coalesce(e.cost, 0),
      b.amount - charged - b.held + h.amount, b.held - h.amount, h.key_id, coalesce(e.end_model, h.model), h.kind,
      case outcome when 'settled' then e.units end, k.month, p_now,
      e.upstream ->> 'provider', e.upstream ->> 'route', v_owed, -v_owed,
      e.upstream ->> 'basis', (e.upstream ->> 'base')::bigint, e.upstream ->> 'currency',
      case e.upstream ->> 'basis' when 'unknown' then 1 else 0 end, h.project_id);
end $$;
