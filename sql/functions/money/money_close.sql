-- Closes an open hold, once: settled at p_cost, or released when p_cost is null; with p_beyond, what exceeds the hold
-- is charged to what is available, within the key's limit, else it is the operator's loss. Locks the account's balance.
-- Returns outcome settled or released; or closed: nothing happened now, and state, charged and upstream say how the
-- hold was closed before (state is null if there never was one).
--
-- A hold that was released and is now to be settled with p_beyond is settled out of what is available. p_upstream is
-- what the upstream charges: {provider, route, basis} and, where it is known, {cost, base, currency}; upstream is what
-- was booked of it, null if that is unknown.
create or replace function money_close(
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
