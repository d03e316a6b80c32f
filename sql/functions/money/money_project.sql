-- Moves a key, and those that share its budget, to a project (null: the default), from the next hold on. Locks the
-- account's balance, because every other writer of a budget rewrites the row it has read. Returns false if there is no
-- such key.
create or replace function money_project(p_key text, p_project text) returns boolean language plpgsql set enable_seqscan = off as $$
declare
  v_budget constant text := (select coalesce(shares, key_id) from budgets where key_id = p_key);
  v_account text;
begin
  select b.account_id into v_account from balances b join budgets k using (account_id) where k.key_id = v_budget
    for update of b;
  update budgets set project_id = p_project where account_id = v_account and v_budget in (key_id, shares);
  return found;
end $$;
