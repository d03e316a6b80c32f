-- Returns the sums of two objects of units (unit → decimal text). Locks nothing.
create or replace function add_units(a jsonb, b jsonb) returns jsonb immutable language sql as $$
  select coalesce(jsonb_object_agg(unit, amount), '{}') from (
    select unit, trim_scale(sum(amount::numeric))::text as amount
      from (select * from jsonb_each_text(a) union all select * from jsonb_each_text(b)) u (unit, amount)
     group by unit) s
$$;
