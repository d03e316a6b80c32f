-- Ends all leases of money of a node, which has stopped spending. Its shares of limits stay, as far as it has used them.
-- Locks the leases in the order of move_money.
create or replace function end_leases(p_node text) returns void language plpgsql as $$
begin
  perform from leases where node_id = p_node and account_id <> '' order by account_id, resource for update;
  delete from leases where node_id = p_node and account_id <> '';
  update lessees set has_stopped = true where node_id = p_node;
end $$;
