-- Reserves p_amount for p_ref. Locks the account's balance. Returns outcome held; exists (this ref had a hold before:
-- nothing new happened); insufficient (402); over_limit (403).
--
-- p_node answers for the hold until p_expires. A node whose clock is behind counts in the budget's month, never back in
-- an earlier one.
create or replace function money_hold(
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
