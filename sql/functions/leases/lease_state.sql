-- Returns what of a resource is leased to p_node, to all others, what nodes that died or are cut off had reserved of it
-- (lost), and whether it is recalled. Locks nothing: whoever calls it has the lock of the resource.
--
-- A lease counts for 2 s beyond its end, and beyond the 6 s for which its node trusts the last sign of life that it gave:
-- the node may have looked at it just before, and sends what it has looked at it for. Of a dead node only what it had
-- reserved by its last request counts, for 10 min: its calls may end yet, on the disk of the node. In one query without
-- settings of its own, so that it becomes a part of the query that calls it.
create or replace function lease_state(p_account text, p_resource text, p_node text, p_clock timestamptz)
  returns table (own bigint, others bigint, lost bigint, is_recalled boolean) language sql stable as $$
  select coalesce(sum(l.amount) filter (where l.node_id = p_node and l.is_live), 0)::bigint,
         coalesce(sum(l.amount) filter (where l.node_id is distinct from p_node and l.is_live), 0)::bigint,
         coalesce(sum(l.in_use) filter (where l.node_id is distinct from p_node and l.is_lost), 0)::bigint,
         coalesce(bool_or(l.node_id = '' and l.ends_at > p_clock - interval '2 s'), false)
    from (select l.node_id, l.amount, l.in_use, l.ends_at,
                 n.seen_at > p_clock - interval '8 s' and l.ends_at > p_clock - interval '2 s' as is_live,
                 n.seen_at <= p_clock - interval '8 s' and n.seen_at > p_clock - interval '10 min' as is_lost
            from leases l left join lateral (select seen_at from lessees n where n.node_id = l.node_id offset 0) n on true
           where l.account_id = p_account and l.resource = p_resource) l
$$;
