-- Changes or lifts (null) the monthly limit of a key's budget, and notifies the nodes in the same commit. Locks the
-- account's balance, because every other writer of a budget rewrites the row it has read. Returns false if there is no
-- such key.
create or replace function money_limit(p_key text, p_limit bigint) returns boolean language plpgsql set enable_seqscan = off as $$
declare
  v_budget constant text := (select coalesce(shares, key_id) from budgets where key_id = p_key);
begin
  perform from balances b join budgets k using (account_id) where k.key_id = v_budget for update of b;
  update budgets set limit_month = p_limit, limited_month = month, limited_spent = spent, limited_held = held
    where key_id = v_budget;
  perform pg_notify('money_changed', account_id), recall_leases(account_id, 'limit ' || v_budget, now())
    from budgets where key_id = v_budget;
  return found;
end $$;
