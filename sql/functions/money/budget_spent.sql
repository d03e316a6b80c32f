-- Returns what was charged in the scope of a budget since a time, which is the beginning of a day (UTC) or before all
-- times: from the sums of days, and from the entries behind them. Locks nothing.
create or replace function budget_spent(p_account text, p_scope text, p_subject text, p_from timestamptz) returns bigint
stable language sql as $$
  with mark as materialized (
       select coalesce(m.number, 0) as number, b.entries
         from balances b left join usage_marks m using (account_id) where b.account_id = p_account),
     charges as (
       select s.key_id, nullif(s.project_id, 'default') as project_id, s.cost from usage_sums s
        where s.account_id = p_account and s.step = 'day' and s.start >= p_from
       union all
       select e.key_id, e.project_id, e.revenue + e.loss
         from mark m cross join lateral (select * from ledger_entries e
           where e.account_id = p_account and e.number > m.number and e.number <= m.entries offset 0) e
        where e.type = 'settle' and e.created_at >= p_from)
  select coalesce(sum(c.cost), 0)::bigint
    from charges c left join budgets own on own.key_id = c.key_id
    left join budgets k on k.key_id = coalesce(own.shares, own.key_id)
   where is_in_budget(p_scope, p_subject, c.project_id, k.key_id, k.member_id)
$$;
