-- Returns whether the endpoint has a free slot, beside p_more deliveries of it that queue for the host already. The
-- caller holds the lock of its host.
create or replace function endpoint_has_room(p_endpoint text, p_retry boolean, p_more bigint)
  returns boolean language plpgsql as $$
declare
  room int := case when exists (select from slow_endpoints s where s.endpoint = p_endpoint) then 1
    when p_retry then 3 else 4 end;
begin
  return (select count(*) from delivery_slots p
    where p.endpoint = p_endpoint and (p.expires_at is null or p.expires_at > pgboss.job_now())) + p_more < room;
end $$;
