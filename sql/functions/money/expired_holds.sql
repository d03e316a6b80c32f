-- Returns holds of calls that nobody will end any more, the oldest first, at most p_count. Locks nothing. A node that
-- said within p_silent that it is alive ends its own holds, unless they are older than p_late: no call lives so long.
--
-- All times are of the database's clock, also expires_at.
create or replace function expired_holds(p_now timestamptz, p_silent interval, p_late interval, p_count int)
  returns table (account_id text, ref text) language sql stable as $$
  select h.account_id, h.ref from open_holds h
   where h.expires_at < p_now
     and (h.expires_at < p_now - p_late or not exists (
       select from nodes n where n.id = h.node_id and n.seen_at > p_now - p_silent))
   order by h.expires_at limit p_count
$$;
