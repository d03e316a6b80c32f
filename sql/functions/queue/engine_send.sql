-- Sends a job within the caller's transaction; without p_start_after it starts as soon as that commits. p_key names
-- what the job works for: engine_live_keys() lists the keys that still have a job. Returns the job's id, or null if the
-- queue allows one job per key and there is one already.
--
-- Writes exactly the row that pg-boss 12.35 writes (test/queue/send.test.ts compares all columns).
create or replace function engine_send(p_queue text, p_data jsonb, p_start_after timestamptz default null, p_key text default null)
  returns uuid language plpgsql as $$
declare
  v_start_after timestamptz := coalesce(p_start_after, pgboss.job_now());
  v_id uuid;
begin
  insert into pgboss.job (
    id, name, data, priority, start_after, created_on, singleton_key, singleton_on, group_id, group_tier,
    expire_seconds, deletion_seconds, keep_until,
    retry_limit, retry_delay, retry_backoff, retry_delay_max,
    policy, dead_letter, heartbeat_seconds, blocked, blocking, pending_dependencies)
  select
    gen_random_uuid(), q.name, p_data, 0, v_start_after, pgboss.job_now(), p_key, null, null, null,
    q.expire_seconds, q.deletion_seconds, v_start_after + q.retention_seconds * interval '1s',
    q.retry_limit, q.retry_delay, coalesce(q.retry_backoff, false), q.retry_delay_max,
    q.policy, q.dead_letter, q.heartbeat_seconds, false, false, 0
  from pgboss.queue q
  where q.name = p_queue
  on conflict do nothing
  returning id into v_id;
  if v_id is null and not exists (select from pgboss.queue q where q.name = p_queue) then
    raise exception 'The engine has no queue "%": the job would be lost.', p_queue;
  end if;
  return v_id;
end $$;
