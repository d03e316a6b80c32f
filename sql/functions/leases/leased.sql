-- Returns what of a resource is leased to p_node, to all others, and what nodes that died or are cut off had reserved of
-- it. Whoever calls it has the lock of the resource.
create or replace function leased(
  p_account text, p_resource text, p_node text, p_clock timestamptz,
  out own bigint, out others bigint, out lost bigint
) language plpgsql set enable_seqscan = off as $$
begin
  select coalesce(sum(amount) filter (where node_id = p_node), 0),
         coalesce(sum(amount) filter (where node_id is distinct from p_node and not is_lost), 0),
         coalesce(sum(amount) filter (where node_id is distinct from p_node and is_lost), 0)
    into own, others, lost from leases_of(p_account, p_resource, p_clock);
end $$;
