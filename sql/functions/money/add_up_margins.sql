-- Adds what callers and upstreams charged with an account's next entries, at most p_limit of them, to the sums of
-- margins. Locks the account's mark, so that two at a time wait for each other. Returns how many entries are behind the
-- mark then: 0 when none is left.
create or replace function add_up_margins(p_account text, p_limit bigint) returns bigint language plpgsql set enable_seqscan = off as $$
declare
  v_from bigint;
  v_to bigint;
  v_last bigint;
begin
  insert into usage_marks (account_id, number) values (p_account, 0) on conflict do nothing;
  select margins into v_from from usage_marks where account_id = p_account for update;
  -- Entries are numbered under the lock of the account: below the last one that is seen none is still to come.
  select entries into v_last from balances where account_id = p_account;
  v_to := least(v_last, v_from + p_limit);
  if v_last is null or v_to <= v_from then
    return 0;
  end if;
  insert into margin_sums as s (account_id, month, step, start, model, provider, route, base_currency, runs, revenue,
      upstream_cost, base, unknown)
    with used as materialized (
      select month, (created_at at time zone 'UTC')::date as day, coalesce(model, '') as model,
             coalesce(provider, '') as provider, coalesce(route, '') as route, coalesce(base_currency, '') as base_currency,
             count(*) filter (where type <> 'upstream') as runs, sum(revenue + loss) as revenue,
             sum(upstream_cost) as upstream_cost, sum(coalesce(upstream_base, 0)) as base,
             sum(upstream_unknown + case when type = 'settle' and upstream_basis is null then 1 else 0 end) as unknown
        from ledger_entries
       where account_id = p_account and number > v_from and number <= v_to
         and (type = 'settle' or upstream_basis is not null)
       group by 1, 2, 3, 4, 5, 6)
    select p_account, month, step, case step when 'day' then day else month end,
           model, provider, route, base_currency,
           sum(runs)::bigint, sum(revenue)::bigint, sum(upstream_cost)::bigint, sum(base)::bigint, sum(unknown)::bigint
      from used cross join (values ('month'), ('day')) v (step)
     group by 1, 2, 3, 4, 5, 6, 7, 8
  on conflict (account_id, month, step, start, model, provider, route, base_currency) do update set
    runs = s.runs + excluded.runs, revenue = s.revenue + excluded.revenue,
    upstream_cost = s.upstream_cost + excluded.upstream_cost, base = s.base + excluded.base,
    unknown = s.unknown + excluded.unknown;
  update usage_marks set margins = v_to where account_id = p_account;
  return v_last - v_to;
end $$;
