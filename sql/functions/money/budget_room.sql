-- Returns the hard budgets that a key counts in, and what may still be spent of all of them: null without any, below zero
-- after an amount was lowered. Whoever calls it has the lock of the account's balance, and has begun the periods.
create or replace function budget_room(
  p_account text, p_project text, p_key text, p_member text,
  out ids text[], out room bigint
) stable language sql as $$
  select array_agg(id order by id), min(amount - spent - held - exposed) from account_budgets
   where account_id = p_account and is_hard and is_in_budget(scope, subject, p_project, p_key, p_member)
$$;
