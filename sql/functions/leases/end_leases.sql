-- Ends all leases of money of a node, which has stopped spending. Its shares of limits stay, as far as it has used them.
create or replace function end_leases(p_node text) returns void language sql as $$
  delete from leases where node_id = p_node and account_id <> '';
  update lessees set has_stopped = true where node_id = p_node
$$;
