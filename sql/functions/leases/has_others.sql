-- Returns whether any node but p_node may have leases of money that count.
create or replace function has_others(p_node text, p_clock timestamptz) returns boolean language sql stable as $$
  select exists (select from lessees n
    where n.node_id is distinct from p_node and not n.has_stopped and n.seen_at > p_clock - interval '10 min')
$$;
