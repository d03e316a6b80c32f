-- Closes an attempt that did not lead to a run; with p_send_start the next routes get a job. Locks the attempt, and the
-- account's balance where nobody knows whether the upstream has the run and charges for it. Returns false if it was
-- closed otherwise, or claimed, in between.
create or replace function close_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_state text, p_reason text, p_message text,
  p_send_start boolean
) returns boolean language plpgsql as $$
declare
  closed record;
begin
  update attempts set state = p_state, reason = p_reason, message = p_message, ended_at = p_now
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
    returning provider, route into closed;
  if not found then
    return exists (select from attempts
      where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim
        and state = p_state and ended_at = p_now);
  end if;
  if p_state = 'ambiguous' then
    perform money_upstream(p_now, p_account, p_id, p_number::text, closed.provider, closed.route, t.model, t.kind, 'unknown')
      from tasks t where t.account_id = p_account and t.id = p_id;
  end if;
  if p_send_start then
    perform engine_send('task.start', jsonb_build_object('account_id', p_account, 'task_id', p_id), null, p_id);
  end if;
  return true;
end $$;
