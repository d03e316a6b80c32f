-- Leases to p_node what it has reserved of a resource already (p_in_use), and half of what is free beside that; but not
-- less than p_least, which it may spend in any case since it has it now. While the resource is recalled it gets no
-- more. p_free is what there is, with what is leased. Returns the amount. Whoever calls it has the lock of the resource.
create or replace function lease_to(
  p_account text, p_resource text, p_node text, p_clock timestamptz, p_free bigint, p_in_use bigint, p_least bigint
) returns bigint language plpgsql as $$
declare
  v_others bigint;
  v_is_recalled boolean;
  v_amount bigint;
begin
  select coalesce(sum(amount) filter (where node_id <> p_node and not is_lost), 0), coalesce(bool_or(node_id = ''), false)
    into v_others, v_is_recalled from leases_of(p_account, p_resource, p_clock);
  v_amount := greatest(p_least, p_in_use);
  if not v_is_recalled then
    v_amount := greatest(v_amount, p_in_use + (p_free - v_others - p_in_use) / 2);
  end if;
  perform grant_lease(p_account, p_resource, p_node, v_amount, p_in_use, p_clock);
  return v_amount;
end $$;
