-- Notes what the upstream said of a run that goes on, and the start of the task the first time it is seen running; the
-- first note sends the poll job. Locks the task, then the attempt. Returns false if the attempt was closed or claimed
-- in between, or its run_ref is not p_seen_ref any more.
create or replace function accept_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_seen_ref text, p_run_ref text,
  p_running boolean, p_poll_after_ms int
) returns boolean language plpgsql as $$
begin
  perform from tasks where account_id = p_account and id = p_id and completed_at is null for update;
  if not found then
    return false;
  end if;
  update attempts set state = 'accepted', run_ref = p_run_ref
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
      and run_ref is not distinct from p_seen_ref;
  if not found then
    return exists (select from attempts
      where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
        and run_ref = p_run_ref);
  end if;
  if p_running then
    update tasks set status = 'running', started_at = p_now
      where account_id = p_account and id = p_id and started_at is null;
  end if;
  if p_seen_ref is null then
    perform engine_send('task.poll', jsonb_build_object('account_id', p_account, 'task_id', p_id),
      pgboss.job_now() + p_poll_after_ms * interval '1 ms', p_id);
  end if;
  return true;
end $$;
