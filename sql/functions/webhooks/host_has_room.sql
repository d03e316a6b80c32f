-- Returns whether the host has a free slot; retries leave a quarter of the 64 to first attempts. The caller holds the
-- lock of the host.
create or replace function host_has_room(p_host text, p_retry boolean) returns boolean language plpgsql as $$
begin
  return (select count(*) from delivery_slots p
    where p.host = p_host and (p.expires_at is null or p.expires_at > pgboss.job_now())) < case when p_retry then 48 else 64 end;
end $$;
