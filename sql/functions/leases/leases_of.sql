-- Returns the leases of a resource that still count. Locks nothing.
--
-- A lease counts for 2 s beyond its end: its node may have looked at it just before, and sends what it has looked at it
-- for. Then its node has died or is cut off, and only what it had reserved by its last request counts (is_lost): its
-- calls may end yet, on the disk of the node. In one query, so that it becomes a part of the query that calls it.
create or replace function leases_of(p_account text, p_resource text, p_clock timestamptz)
  returns table (node_id text, amount bigint, is_lost boolean) language sql stable as $$
  select l.node_id, case when l.ends_at > p_clock - interval '2 s' then l.amount else l.in_use end,
         l.ends_at <= p_clock - interval '2 s'
    from leases l
   where l.account_id = p_account and l.resource = p_resource
     and (l.ends_at > p_clock - interval '2 s' or l.in_use > 0 and l.ends_at > p_clock - interval '10 min')
$$;
