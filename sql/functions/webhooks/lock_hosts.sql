-- Locks hosts until the transaction ends, in the order of their names, so that no two callers wait for each other.
-- Whoever counts slots holds the lock of their host.
create or replace function lock_hosts(p_hosts text[]) returns void language plpgsql as $$
declare
  h text;
begin
  for h in select distinct u.h from unnest(p_hosts) as u (h) order by 1 loop
    perform pg_advisory_xact_lock(hashtextextended('host ' || h, 0));
  end loop;
end $$;
