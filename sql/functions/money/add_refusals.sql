-- Adds refusals to the hours that have them: member i of each array is of one row. Locks the accounts in the order of their
-- ids before any row, as a deletion does, then the rows in the order of their names. Rows of accounts that are gone are
-- passed over.
create or replace function add_refusals(
  p_accounts text[], p_starts timestamptz[], p_reasons text[], p_keys text[], p_budgets text[], p_models text[], p_counts bigint[]
) returns void language plpgsql as $$
begin
  -- A row's foreign key locks its account only after other rows have been changed, for which a deletion may wait by then.
  perform from accounts where id = any (p_accounts) order by id for key share;
  insert into refusals (account_id, start, reason, key_id, project_id, budget_id, model, count)
  select r.account_id, r.start, r.reason, r.key_id,
         coalesce(k.project_id, case when k.key_id is null then '' else 'default' end), r.budget_id, r.model, r.count
    from unnest(p_accounts, p_starts, p_reasons, p_keys, p_budgets, p_models, p_counts)
           as r (account_id, start, reason, key_id, budget_id, model, count)
    join accounts a on a.id = r.account_id
    left join budgets own on own.key_id = r.key_id
    left join budgets k on k.key_id = coalesce(own.shares, own.key_id)
   order by 1, 2, 3, 4, 5, 6, 7
      on conflict (account_id, start, reason, key_id, project_id, budget_id, model)
      do update set count = refusals.count + excluded.count;
end $$;
