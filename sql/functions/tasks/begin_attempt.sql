-- Writes an attempt down before the upstream is called, if its provider has room by p_limits {max_active, per_minute},
-- and nobody waits for that room. Locks the provider if it has limits or is full, then the task against an end that is
-- under way. Returns begun; full; stale (the task is final by now, or another attempt of it is open).
--
-- p_attempt has account_id, task_id, number, claim, route, provider and route_settings of the attempt.
create or replace function begin_attempt(p_now timestamptz, p_attempt jsonb, p_limits jsonb) returns text
  language plpgsql set enable_seqscan = off as $$
declare
  a constant attempts := jsonb_populate_record(null::attempts, p_attempt);
  v_closed text[];
begin
  if p_limits ->> 'max_active' is not null or p_limits ->> 'per_minute' is not null
      or exists (select from full_routes f where f.route = a.route)
      or exists (select from throttled_tasks k where k.provider = a.provider and k.promoted_at is null) then
    perform lock_provider(a.provider);
    if not exists (select from throttled_tasks k -- a run is reserved for it
          where k.account_id = a.account_id and k.task_id = a.task_id and k.route = a.route and k.promoted_at is not null)
        and not exists (select from attempts x -- this very call, whose answer was lost
          where x.account_id = a.account_id and x.task_id = a.task_id and x.claim = a.claim) then
      v_closed := closed_routes(p_now, a.provider);
      if a.route = any(v_closed) or provider_room(p_now, a.provider, p_limits) <= 0
          or exists (select from throttled_tasks k
            where k.provider = a.provider and k.promoted_at is null and k.route <> all(v_closed)
              and (k.account_id, k.task_id) <> (a.account_id, a.task_id)) then
        return 'full';
      end if;
    end if;
  end if;
  perform from tasks t where t.account_id = a.account_id and t.id = a.task_id and t.completed_at is null for share;
  if not found then
    return 'stale';
  end if;
  insert into attempts (account_id, task_id, number, route, provider, route_settings, claim, created_at)
    values (a.account_id, a.task_id, a.number, a.route, a.provider, a.route_settings, a.claim, p_now)
    on conflict do nothing;
  if not found and not exists (select from attempts x
      where x.account_id = a.account_id and x.task_id = a.task_id and x.number = a.number and x.claim = a.claim
        and x.ended_at is null) then
    return 'stale';
  end if;
  delete from throttled_tasks k where k.account_id = a.account_id and k.task_id = a.task_id;
  return 'begun';
end $$;
