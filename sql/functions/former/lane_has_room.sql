-- endpoint_has_room for calls that are under way while functions are replaced.
create or replace function lane_has_room(p_lane text, p_retry boolean, p_more bigint) returns boolean language plpgsql as $$
begin
  return endpoint_has_room(p_lane, p_retry, p_more);
end $$;
