-- note_upstream for nodes of the version before.
create or replace function money_upstream(
  p_now timestamptz, p_account text, p_ref text, p_number text, p_provider text, p_route text, p_model text, p_kind text,
  p_basis text
) returns void language plpgsql as $$
begin
  perform note_upstream(p_now, jsonb_build_object('account_id', p_account, 'ref', p_ref, 'number', p_number,
    'provider', p_provider, 'route', p_route, 'model', p_model, 'kind', p_kind), p_basis);
end $$;
