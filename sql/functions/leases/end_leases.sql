-- Ends all leases of a node, which has stopped spending. Locks their rows alone.
create or replace function end_leases(p_node text) returns void language sql as $$
  delete from leases where node_id = p_node
$$;
