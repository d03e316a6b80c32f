-- Holds what was promised to a call (p_pledge) and ends the hold at once, as money_hold and money_close would; what the
-- account no longer has, or the key may no longer spend, is not held. Locks the account's balance. Returns outcome,
-- state and charged as money_close does, remaining as money_hold does.
--
-- If the hold was written meanwhile, that one is ended.
create or replace function money_keep(
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
