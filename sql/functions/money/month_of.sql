-- Returns the UTC month of a time. Locks nothing.
create or replace function month_of(p_now timestamptz) returns date immutable parallel safe language sql as $$
  select date_trunc('month', p_now at time zone 'UTC')::date
$$;
