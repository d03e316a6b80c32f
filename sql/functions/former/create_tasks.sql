-- insert_tasks for nodes of the version before.
create or replace function create_tasks(
  p_now timestamptz, p_account text[], p_key text[], p_id text[], p_model text[], p_kind text[],
  p_input text[], p_metadata text[], p_webhook_url text[], p_currency text[],
  p_pricing jsonb[], p_held_units jsonb[], p_estimate bigint[], p_created_at timestamptz[], p_deadline timestamptz[],
  p_failures_max int,
  out outcome text[], out retry_after int[], out available bigint[], out remaining bigint[]
) language plpgsql as $$
begin
  select c.outcome, c.retry_after, c.available, c.remaining into outcome, retry_after, available, remaining
    from insert_tasks(p_now, (
      select jsonb_agg(jsonb_build_object('account_id', p_account[i], 'key_id', p_key[i], 'id', p_id[i],
          'model', p_model[i], 'kind', p_kind[i], 'input', p_input[i], 'metadata', p_metadata[i],
          'webhook_url', p_webhook_url[i], 'currency', p_currency[i], 'pricing', p_pricing[i],
          'held_units', p_held_units[i], 'estimate', p_estimate[i], 'created_at', p_created_at[i],
          'deadline_at', p_deadline[i]) order by i)
        from generate_subscripts(p_id, 1) i), p_failures_max) c;
end $$;
