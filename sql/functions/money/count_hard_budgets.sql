-- Notes how many hard budgets an account has, and notifies the nodes in the same commit: what they know of its money may
-- no longer be true. Whoever calls it has the lock of the account's balance.
create or replace function count_hard_budgets(p_account text) returns void language plpgsql set enable_seqscan = off as $$
begin
  update balances set hard_budgets = (select count(*) from account_budgets where account_id = p_account and is_hard)
    where account_id = p_account;
  perform pg_notify('money_changed', p_account);
end $$;
