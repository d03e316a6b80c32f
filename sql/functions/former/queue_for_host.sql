-- promote_throttled for calls of end_deliveries that are under way while functions are replaced.
create or replace function queue_for_host(p_lane text) returns void language plpgsql as $$
begin
  perform promote_throttled(p_lane);
end $$;
