-- Notes that the upstream of a route is full: nobody asks again within p_wait_ms, or, if that is null, within a second,
-- then two, four and so on up to thirty. p_is_firm: the upstream has said for how long; else the end of a run of this
-- provider is a reason to ask at once. What was under way when another one was refused says nothing new. Locks the route.
-- Returns nothing.
create or replace function note_full_route(
  p_now timestamptz, p_route text, p_provider text, p_wait_ms float8, p_is_firm boolean
) returns void language plpgsql as $$
declare
  f full_routes;
begin
  insert into full_routes (route, provider, refusals, refused_at, retry_at, is_firm)
    values (p_route, p_provider, 0, p_now, p_now, false) on conflict do nothing;
  select * into f from full_routes x where x.route = p_route for update;
  if f.retry_at <= p_now then
    f.refusals := f.refusals + 1;
    f.retry_at := p_now + coalesce(p_wait_ms, least(30000, 1000 * 2 ^ least(f.refusals - 1, 10)) * (0.75 + random() / 2))
      * interval '1 ms';
    f.is_firm := p_is_firm;
  elsif p_is_firm then
    f.retry_at := greatest(f.retry_at, p_now + p_wait_ms * interval '1 ms');
    f.is_firm := true;
  end if;
  update full_routes x set refusals = f.refusals, refused_at = p_now, retry_at = f.retry_at, is_firm = f.is_firm
    where x.route = p_route;
end $$;
