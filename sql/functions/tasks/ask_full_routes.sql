-- A run of the provider has ended: its full routes may be asked at once, unless they have said for how long they are full.
-- Locks these routes, but for those that somebody has locked. Returns nothing.
create or replace function ask_full_routes(p_now timestamptz, p_provider text) returns void language plpgsql as $$
begin
  update full_routes f set retry_at = p_now
    where f.route in (select x.route from full_routes x
      where x.provider = p_provider and not x.is_firm and x.retry_at > p_now for update skip locked);
end $$;
