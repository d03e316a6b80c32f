-- begin_attempt without limits, for nodes of the version before.
create or replace function open_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_route text, p_provider text, p_settings text
) returns boolean language plpgsql as $$
begin
  return begin_attempt(p_now, jsonb_build_object('account_id', p_account, 'task_id', p_id, 'number', p_number,
    'claim', p_claim, 'route', p_route, 'provider', p_provider, 'route_settings', p_settings), null) = 'begun';
end $$;
