-- hold_money for nodes of the version before.
create or replace function money_hold(
  p_now timestamptz, p_account text, p_key text, p_ref text, p_amount bigint,
  p_model text, p_kind text, p_expires timestamptz, p_node text default null,
  out outcome text, out available bigint, out remaining bigint
) language plpgsql as $$
begin
  select h.outcome, h.available, h.remaining into outcome, available, remaining
    from hold_money(p_now, p_expires, jsonb_build_object('account_id', p_account, 'key_id', p_key, 'ref', p_ref,
      'amount', p_amount, 'model', p_model, 'kind', p_kind, 'expires_in_ms', 0), p_node) h;
end $$;
