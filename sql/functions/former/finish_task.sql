-- end_task for nodes of the version before.
create or replace function finish_task(
  p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz,
  p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text,
  p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text,
  p_delivery jsonb, p_upstream jsonb default null
) returns text language plpgsql as $$
begin
  return end_task(p_now, jsonb_build_object('account_id', p_account, 'id', p_id, 'claim', p_claim,
    'seen_started_at', p_seen_started_at, 'started_at', p_started_at, 'status', p_status, 'cost', p_cost,
    'measured', p_measured, 'units', p_units, 'error_type', p_error_type, 'error_message', p_error_message,
    'counts_as_failure', p_counts, 'files', p_files, 'attempt_state', p_attempt_state,
    'attempt_reason', p_attempt_reason, 'upstream', p_upstream, 'upstream_cost', p_upstream_cost,
    'delivery', p_delivery), p_body);
end $$;
