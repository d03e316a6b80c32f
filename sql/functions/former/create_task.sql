-- insert_task for nodes of the version before.
create or replace function create_task(
  p_now timestamptz, p_account text, p_key text, p_id text, p_model text, p_kind text,
  p_input text, p_metadata text, p_webhook_url text, p_currency text,
  p_pricing jsonb, p_held_units jsonb, p_estimate bigint, p_deadline timestamptz,
  p_failures_max int, p_idempotency_key text, p_body_hash bytea,
  out outcome text, out task_id text, out retry_after int, out available bigint, out remaining bigint
) language plpgsql as $$
begin
  select c.outcome, c.task_id, c.retry_after, c.available, c.remaining
    into outcome, task_id, retry_after, available, remaining
    from insert_task(jsonb_build_object('account_id', p_account, 'key_id', p_key, 'id', p_id, 'model', p_model,
        'kind', p_kind, 'metadata', p_metadata, 'webhook_url', p_webhook_url, 'currency', p_currency,
        'pricing', p_pricing, 'held_units', p_held_units, 'estimate', p_estimate, 'created_at', p_now,
        'deadline_at', p_deadline), p_input, p_failures_max,
      jsonb_build_object('key', p_idempotency_key, 'body_hash', p_body_hash)) c;
end $$;
