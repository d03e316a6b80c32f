-- Returns what is leased to a node that has reserved p_in_use of a resource already: that, and half of what is free beside
-- it; but not less than p_least, which it may spend in any case since it has it now. While the resource is recalled it
-- gets no more. p_free is what there is and is not leased to others. Reads nothing.
create or replace function lease_amount(p_free bigint, p_in_use bigint, p_least bigint, p_is_recalled boolean)
  returns bigint immutable parallel safe language sql as $$
  select greatest(p_least, p_in_use, case when not p_is_recalled then p_in_use + (p_free - p_in_use) / 2 end)
$$;
