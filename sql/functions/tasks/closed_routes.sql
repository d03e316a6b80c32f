-- Returns the routes of the provider that nobody may ask now: their upstreams have said that they are full, and it is not
-- yet time to ask again, or somebody asks just now. Locks nothing.
--
-- A submit that has no answer after two seconds is not refused for fullness any more: some answer with the result itself.
create or replace function closed_routes(p_now timestamptz, p_provider text) returns text[]
  language plpgsql set enable_seqscan = off as $$
begin
  return array(select f.route from full_routes f
    where f.provider = p_provider and (f.retry_at > p_now
      or exists (select from throttled_tasks k
        where k.provider = p_provider and k.route = f.route and k.promoted_at is not null)
      or exists (select from attempts a
        where a.provider = p_provider and a.ended_at is null and a.route = f.route and a.state = 'submitting'
          and a.created_at > greatest(f.refused_at, p_now - interval '2 seconds'))));
end $$;
