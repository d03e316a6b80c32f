-- move_money for nodes of the version before.
create or replace function money_batch(
  p_now timestamptz, p_verb text[], p_account text[], p_key text[], p_ref text[], p_amount bigint[],
  p_model text[], p_kind text[], p_expires timestamptz[], p_beyond boolean[], p_units jsonb[],
  p_upstream jsonb[] default null, p_pledge bigint[] default null, p_node text default null,
  out outcome text[], out state text[], out charged bigint[], out available bigint[], out remaining bigint[],
  out upstream bigint[]
) language plpgsql as $$
begin
  select m.outcome, m.state, m.charged, m.available, m.remaining, m.upstream
    into outcome, state, charged, available, remaining, upstream
    from move_money(p_now, p_now, (
      select jsonb_agg(jsonb_build_object('verb', case p_verb[i] when 'keep' then 'commit' else p_verb[i] end,
          'account_id', p_account[i], 'key_id', p_key[i], 'ref', p_ref[i], 'amount', p_amount[i], 'cost', p_amount[i],
          'reserved', p_pledge[i], 'model', p_model[i], 'kind', p_kind[i], 'expires_in_ms', extract(epoch from p_expires[i] - p_now) * 1000,
          'beyond_hold', p_beyond[i], 'units', p_units[i], 'upstream', p_upstream[i]) order by i)
        from generate_subscripts(p_ref, 1) i), p_node) m;
end $$;
