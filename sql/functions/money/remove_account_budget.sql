-- Removes a budget of an account; what was held in it counts there no more. Locks the account's balance. Returns false if
-- there is none.
create or replace function remove_account_budget(p_account text, p_id text) returns boolean
language plpgsql set enable_seqscan = off as $$
begin
  perform from balances where account_id = p_account for update;
  delete from account_budgets where id = p_id and account_id = p_account;
  if not found then
    return false;
  end if;
  perform count_hard_budgets(p_account);
  return true;
end $$;
