-- Returns how many runs may begin at the provider now, by its limits {max_active, per_minute}; null if it has none. Runs
-- that are reserved count as begun. The caller holds the provider's lock.
create or replace function provider_room(p_now timestamptz, p_provider text, p_limits jsonb) returns bigint
  language plpgsql set enable_seqscan = off as $$
declare
  v_max_active constant bigint := (p_limits ->> 'max_active')::bigint;
  v_per_minute constant bigint := (p_limits ->> 'per_minute')::bigint;
  v_reserved bigint;
begin
  if v_max_active is null and v_per_minute is null then
    return null;
  end if;
  select count(*) into v_reserved from throttled_tasks k where k.provider = p_provider and k.promoted_at is not null;
  return least(
    v_max_active - v_reserved
      - (select count(*) from attempts a where a.provider = p_provider and a.ended_at is null),
    case when v_per_minute is not null then v_per_minute - v_reserved
      - (select count(*) from attempts a
          where a.provider = p_provider and a.created_at > p_now - interval '60 seconds') end);
end $$;
