-- Reserves money for a task or a chat call: p_hold has account_id, key_id, ref, amount, model and kind, and may have
-- exposed: what the call may cost beyond the amount, which is kept free. Locks the account's balance. Returns outcome
-- held; exists (this ref had a hold before: nothing new happened); insufficient (402); over_limit (403: the key's limit, or
-- a hard budget that it counts in, and remaining is the least that is left of them); leased: nodes
-- have leased what it takes, and are asked for it, so try again in a moment.
--
-- With is_leased, the hold was answered out of the leases of p_node, which do not count then.
--
-- p_node answers for the hold until expires_in_ms, if p_hold has that, after p_clock, the time of the database. A node
-- whose clock (p_now) is behind counts in the budget's month, never back in an earlier one.
create or replace function hold_money(
  p_now timestamptz, p_clock timestamptz, p_hold jsonb, p_node text,
  out outcome text, out available bigint, out remaining bigint
) language plpgsql set enable_seqscan = off as $$
declare
  h constant open_holds := jsonb_populate_record(null::open_holds, p_hold);
  v_exposed constant bigint := coalesce(h.exposed, 0);
  v_clock constant timestamptz := coalesce(p_clock, now());
  b balances;
  k budgets;
  v_budgets text[]; -- hard ones that the key counts in
  v_room bigint; -- what is left of them
  v_node constant text := case when (p_hold ->> 'is_leased')::boolean then p_node end; -- the node whose lease it may use
  v_share bigint; -- what it may take of the account, and of the key
  v_key_share bigint;
begin
  select * into b from balances where account_id = h.account_id for update;
  select * into k from budgets where key_id = h.key_id and account_id = h.account_id;
  if k.shares is not null then
    select * into strict k from budgets where key_id = k.shares;
  end if;
  if b.account_id is null or k.key_id is null then
    raise exception 'there is no account % with a key %', h.account_id, h.key_id using errcode = 'foreign_key_violation';
  elsif h.amount is null or h.amount < 0 or v_exposed < 0 then
    raise exception 'a hold of % is not an amount', h.amount using errcode = 'numeric_value_out_of_range';
  end if;
  if k.month < month_of(p_now) then
    k.month := month_of(p_now);
    k.spent := 0;
  end if;
  available := b.amount - b.held - b.exposed;
  remaining := k.limit_month - k.spent - k.held - k.exposed;
  select available - lost, lease_share(available - lost, own, others) into available, v_share
    from lease_state(h.account_id, 'money', v_node, v_clock);
  if k.limit_month is not null then
    select remaining - lost, lease_share(remaining - lost, own, others) into remaining, v_key_share
      from lease_state(h.account_id, 'limit ' || k.key_id, v_node, v_clock);
  end if;
  if b.hard_budgets > 0 then
    perform begin_periods(h.account_id, p_now, b.entries);
    select ids, room into v_budgets, v_room from budget_room(h.account_id, k.project_id, k.key_id, k.member_id);
    remaining := least(remaining, v_room);
  end if;
  if exists (select from ledger_entries
      where ref = h.ref and event = 'hold' and account_id is not distinct from h.account_id) then
    outcome := 'exists';
  elsif available < h.amount + v_exposed then
    outcome := 'insufficient';
  elsif remaining < h.amount + v_exposed then
    outcome := 'over_limit';
  elsif v_share < h.amount + v_exposed then
    outcome := 'leased';
    perform recall_leases(h.account_id, 'money', v_clock);
  elsif v_key_share < h.amount + v_exposed then
    outcome := 'leased';
    perform recall_leases(h.account_id, 'limit ' || k.key_id, v_clock);
  else
    outcome := 'held';
    available := available - h.amount - v_exposed;
    remaining := remaining - h.amount - v_exposed;
    update balances set held = b.held + h.amount, exposed = b.exposed + v_exposed, entries = b.entries + 1
      where account_id = h.account_id;
    update budgets set month = k.month, spent = k.spent, held = k.held + h.amount, exposed = k.exposed + v_exposed
      where key_id = k.key_id;
    perform count_in_budgets(v_budgets, 0, h.amount, v_exposed);
    insert into open_holds (account_id, ref, key_id, amount, model, kind, created_at, expires_at, node_id, exposed,
        project_id, budget_ids)
      values (h.account_id, h.ref, h.key_id, h.amount, h.model, h.kind, p_now,
        p_clock + (p_hold ->> 'expires_in_ms')::float8 * interval '1 ms', p_node, v_exposed, k.project_id,
        v_budgets);
    insert into ledger_entries (account_id, number, type, ref, event, currency, available, held,
        available_after, held_after, key_id, model, kind, month, created_at, project_id)
      values (h.account_id, b.entries + 1, 'hold', h.ref, 'hold', b.currency, -h.amount, h.amount,
        b.amount - b.held - h.amount, b.held + h.amount, h.key_id, h.model, h.kind, k.month, p_now, k.project_id);
  end if;
end $$;
