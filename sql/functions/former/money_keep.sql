-- commit_hold for nodes of the version before.
create or replace function money_keep(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_pledge bigint, p_model text, p_kind text,
  p_cost bigint, p_beyond boolean, p_units jsonb, p_upstream jsonb,
  out outcome text, out state text, out charged bigint, out available bigint, out remaining bigint, out upstream bigint
) language plpgsql as $$
begin
  select c.outcome, c.state, c.charged, c.available, c.remaining, c.upstream
    into outcome, state, charged, available, remaining, upstream
    from commit_hold(p_now, jsonb_build_object('account_id', p_account, 'key_id', p_key, 'ref', p_ref,
      'reserved', p_pledge, 'model', p_model, 'kind', p_kind, 'cost', p_cost, 'beyond_hold', p_beyond, 'units', p_units,
      'upstream', p_upstream)) c;
end $$;
