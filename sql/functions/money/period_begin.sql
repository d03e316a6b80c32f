-- Returns when the period of a time begins, in UTC: its day, its week (Monday) or its month; of 'total', before all
-- times. Locks nothing.
create or replace function period_begin(p_period text, p_now timestamptz) returns timestamptz
immutable parallel safe language sql as $$
  select case when p_period = 'total' then '-infinity'::timestamptz else date_trunc(p_period, p_now, 'UTC') end
$$;
