-- Sums of charges by hour and by day, so that a page over a million of them answers at once. Derived from the
-- ledger and never the other way round: everything after an account's mark is read from the ledger itself, and
-- `medley books` adds the sums up again.

-- room: money
create table usage_sums (
  account_id text not null,
  step text not null check (step in ('hour', 'day')),
  start timestamptz not null, -- of the hour or the day, UTC
  key_id text not null,
  model text not null,
  kind text not null,
  charges bigint not null,
  cost bigint not null,
  units jsonb not null, -- unit → decimal text
  primary key (account_id, step, start, key_id, model, kind)
);

-- How far each account's entries are in the sums.
-- room: money
create table usage_marks (
  account_id text primary key,
  number bigint not null
);

-- room: money
create function add_units(a jsonb, b jsonb) returns jsonb immutable language sql
return (
  select coalesce(jsonb_object_agg(unit, amount), '{}') from (
    select unit, trim_scale(sum(amount::numeric))::text as amount
      from (select * from jsonb_each_text(a) union all select * from jsonb_each_text(b)) u (unit, amount)
     group by unit) s
);

-- Adds the charges among an account's next entries, at most p_limit of them, to its sums. Returns how many entries
-- are behind the mark now: 0 when none were left. Two at a time wait for each other.
-- room: money
create function add_up_usage(p_account text, p_limit bigint) returns bigint language plpgsql set enable_seqscan = off as $$
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
  insert into usage_sums as s (account_id, step, start, key_id, model, kind, charges, cost, units)
    with charges as materialized (
      select number, step, date_trunc(step, created_at, 'UTC') as start, key_id, model, kind, revenue + loss as cost, units
        from ledger_entries cross join (values ('hour'), ('day')) v (step)
       where account_id = p_account and number > v_from and number <= v_to and type = 'settle'),
    used as (
      select step, start, key_id, model, kind, jsonb_object_agg(unit, amount) as units from (
        select step, start, key_id, model, kind, unit, trim_scale(sum(amount::numeric))::text as amount
          from charges, jsonb_each_text(units) u (unit, amount) group by step, start, key_id, model, kind, unit) t
       group by step, start, key_id, model, kind)
    select p_account, step, start, key_id, model, kind, count(*), sum(cost)::bigint, coalesce(u.units, '{}')
      from charges left join used u using (step, start, key_id, model, kind)
     group by step, start, key_id, model, kind, u.units
  on conflict (account_id, step, start, key_id, model, kind) do update set charges = s.charges + excluded.charges,
    cost = s.cost + excluded.cost, units = add_units(s.units, excluded.units);
  update usage_marks set number = v_to where account_id = p_account;
  return v_last - v_to;
end $$;
