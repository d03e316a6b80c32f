-- Notes what the upstream said of a run that goes on, and the start of the task the first time it is seen running; the
-- first note sends the poll job. Locks the task, then the attempt. Returns false if the attempt was closed or claimed
-- in between, or its run_ref is not seen_ref any more.
--
-- p_run has account_id, task_id, number and claim of the attempt, seen_ref, run_ref, running and poll_after_ms.
create or replace function note_run(p_now timestamptz, p_run jsonb) returns boolean language plpgsql as $$
declare
  r record;
begin
  select * into r from jsonb_to_record(p_run) as x (account_id text, task_id text, number int, claim text, seen_ref text,
    run_ref text, running boolean, poll_after_ms int);
  perform from tasks where account_id = r.account_id and id = r.task_id and completed_at is null for update;
  if not found then
    return false;
  end if;
  update attempts set state = 'accepted', run_ref = r.run_ref
    where account_id = r.account_id and task_id = r.task_id and number = r.number and claim = r.claim
      and ended_at is null and run_ref is not distinct from r.seen_ref;
  if not found then
    return exists (select from attempts
      where account_id = r.account_id and task_id = r.task_id and number = r.number and claim = r.claim
        and ended_at is null and run_ref = r.run_ref);
  end if;
  if r.running then
    update tasks set status = 'running', started_at = p_now
      where account_id = r.account_id and id = r.task_id and started_at is null;
  end if;
  if r.seen_ref is null then
    perform engine_send('task.poll', jsonb_build_object('account_id', r.account_id, 'task_id', r.task_id),
      pgboss.job_now() + r.poll_after_ms * interval '1 ms', r.task_id);
  end if;
  return true;
end $$;
