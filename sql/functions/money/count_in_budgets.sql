-- Adds to what is spent, held and kept free of these budgets, as far as they are hard. Locks them in the order of their
-- ids. Whoever calls it has the lock of their account's balance.
create or replace function count_in_budgets(p_ids text[], p_spent bigint, p_held bigint, p_exposed bigint) returns void
language plpgsql set enable_seqscan = off as $$
begin
  if p_ids is not null then
    update account_budgets set spent = spent + p_spent, held = held + p_held, exposed = exposed + p_exposed
      where id = any (p_ids) and is_hard;
  end if;
end $$;
