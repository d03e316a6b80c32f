-- fail_attempt for nodes of the version before.
create or replace function close_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_state text, p_reason text, p_message text,
  p_send_start boolean
) returns boolean language plpgsql as $$
begin
  return fail_attempt(p_now, jsonb_build_object('account_id', p_account, 'task_id', p_id, 'number', p_number,
    'claim', p_claim, 'state', p_state, 'reason', p_reason, 'message', p_message), p_send_start);
end $$;
