-- Holds of calls that nobody will end any more. All times are those of the database's clock: the caller reads it, also for
-- expires_at when a hold is made. A node that said within p_silent that it is alive ends its own holds, unless they are
-- older than p_late: no call lives so long, so that what is left then was forgotten.
drop function expired_holds;
-- room: money
create function expired_holds(p_now timestamptz, p_silent interval, p_late interval, p_count int)
  returns table (account_id text, ref text) language sql stable as $$
  select h.account_id, h.ref from open_holds h
   where h.expires_at < p_now
     and (h.expires_at < p_now - p_late or not exists (
       select from nodes n where n.id = h.node_id and n.seen_at > p_now - p_silent))
   order by h.expires_at limit p_count
$$;

-- As in 0010_embeddings_and_responses.sql; but expires_at is a time of the database's clock, created_at one of a node's,
-- which may be later. The check has this name.
drop function is_sound(open_holds);
-- room: money
create or replace function hold_is_sound(r open_holds) returns boolean immutable language plpgsql as $$
begin
  return r.amount >= 0 and r.kind in ('chat', 'image', 'video', 'audio', 'embedding');
end $$;
