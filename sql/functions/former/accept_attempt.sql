-- note_run for nodes of the version before.
create or replace function accept_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_seen_ref text, p_run_ref text,
  p_running boolean, p_poll_after_ms int
) returns boolean language plpgsql as $$
begin
  return note_run(p_now, jsonb_build_object('account_id', p_account, 'task_id', p_id, 'number', p_number,
    'claim', p_claim, 'seen_ref', p_seen_ref, 'run_ref', p_run_ref, 'running', p_running,
    'poll_after_ms', p_poll_after_ms));
end $$;
