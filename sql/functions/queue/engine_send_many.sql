-- Sends many jobs of one queue, to start as soon as the transaction commits, as engine_send does: member i has the data
-- and the key at i. Returns nothing.
create or replace function engine_send_many(p_queue text, p_data jsonb[], p_key text[]) returns void language plpgsql as $$
declare
  v_now timestamptz := pgboss.job_now();
begin
  insert into pgboss.job (
    id, name, data, priority, start_after, created_on, singleton_key, singleton_on, group_id, group_tier,
    expire_seconds, deletion_seconds, keep_until,
    retry_limit, retry_delay, retry_backoff, retry_delay_max,
    policy, dead_letter, heartbeat_seconds, blocked, blocking, pending_dependencies)
  select
    gen_random_uuid(), q.name, n.data, 0, v_now, v_now, n.key, null, null, null,
    q.expire_seconds, q.deletion_seconds, v_now + q.retention_seconds * interval '1s',
    q.retry_limit, q.retry_delay, coalesce(q.retry_backoff, false), q.retry_delay_max,
    q.policy, q.dead_letter, q.heartbeat_seconds, false, false, 0
  from pgboss.queue q cross join unnest(p_data, p_key) n (data, key)
  where q.name = p_queue
  on conflict do nothing;
  if not found and not exists (select from pgboss.queue q where q.name = p_queue) then
    raise exception 'The engine has no queue "%": the job would be lost.', p_queue;
  end if;
end $$;
