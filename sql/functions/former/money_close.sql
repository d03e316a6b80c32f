-- close_hold for nodes of the version before.
create or replace function money_close(
  p_now timestamptz, p_account text, p_ref text, p_cost bigint, p_beyond boolean, p_units jsonb,
  p_upstream jsonb default null,
  out outcome text, out state text, out charged bigint, out available bigint, out upstream bigint
) language plpgsql as $$
begin
  select c.outcome, c.state, c.charged, c.available, c.upstream into outcome, state, charged, available, upstream
    from close_hold(p_now, jsonb_build_object('account_id', p_account, 'ref', p_ref, 'cost', p_cost,
      'beyond_hold', p_beyond, 'units', p_units, 'upstream', p_upstream)) c;
end $$;
