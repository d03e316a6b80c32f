-- Closes an attempt that did not lead to a run; with p_send_start the next routes get a job. Locks the attempt; if the
-- upstream had the run, the routes that its provider said are full; and the account's balance where nobody knows whether
-- the upstream has the run and charges for it. Returns false if it was closed otherwise, or claimed, in between.
--
-- p_attempt has account_id, task_id, number and claim, and the state, reason and message of its end.
create or replace function fail_attempt(p_now timestamptz, p_attempt jsonb, p_send_start boolean) returns boolean
  language plpgsql as $$
declare
  a constant attempts := jsonb_populate_record(null::attempts, p_attempt);
  closed record;
begin
  update attempts set state = a.state, reason = a.reason, message = a.message, ended_at = p_now
    where account_id = a.account_id and task_id = a.task_id and number = a.number and claim = a.claim
      and ended_at is null
    returning provider, route, run_ref into closed;
  if not found then
    return exists (select from attempts
      where account_id = a.account_id and task_id = a.task_id and number = a.number and claim = a.claim
        and state = a.state and ended_at = p_now);
  end if;
  if a.state = 'ambiguous' then
    perform note_upstream(p_now, jsonb_build_object('account_id', a.account_id, 'ref', a.task_id, 'number', a.number,
        'provider', closed.provider, 'route', closed.route, 'model', t.model, 'kind', t.kind), 'unknown')
      from tasks t where t.account_id = a.account_id and t.id = a.task_id;
  end if;
  if closed.run_ref is not null then
    perform ask_full_routes(p_now, closed.provider);
  end if;
  if p_send_start then
    perform engine_send('task.start', jsonb_build_object('account_id', a.account_id, 'task_id', a.task_id), null,
      a.task_id);
  end if;
  return true;
end $$;
