-- Creates a task: its hold, its row and its job, or nothing. Locks the Idempotency-Key without waiting, then the
-- account's balance. Returns outcome: created; replayed or mismatched (the key was seen before, with the same or
-- another body); in_flight (the key's task is being created); paused (too many failures, retry_after in seconds);
-- insufficient; over_limit.
create or replace function create_task(
  p_now timestamptz, p_account text, p_key text, p_id text, p_model text, p_kind text,
  p_input text, p_metadata text, p_webhook_url text, p_currency text,
  p_pricing jsonb, p_held_units jsonb, p_estimate bigint, p_deadline timestamptz,
  p_failures_max int, p_idempotency_key text, p_body_hash bytea,
  out outcome text, out task_id text, out retry_after int, out available bigint, out remaining bigint
) language plpgsql as $$
declare
  seen idempotency_keys;
  paused timestamptz;
begin
  if p_idempotency_key is not null then
    if not pg_try_advisory_xact_lock(hashtextextended(p_account || ' ' || p_idempotency_key, 0)) then
      outcome := 'in_flight';
      return;
    end if;
    select * into seen from idempotency_keys i
      where i.account_id = p_account and i.key = p_idempotency_key and i.created_at > p_now - interval '24 hours';
    if found then
      outcome := case when seen.body_hash = p_body_hash then 'replayed' else 'mismatched' end;
      task_id := seen.task_id;
      return;
    end if;
  end if;

  paused := paused_until(p_now, p_account, p_failures_max);
  if paused is not null then
    outcome := 'paused';
    retry_after := greatest(1, ceil(extract(epoch from paused - p_now)));
    return;
  end if;

  select h.outcome, h.available, h.remaining into outcome, available, remaining
    from money_hold(p_now, p_account, p_key, p_id, p_estimate, p_model, p_kind, null) h;
  if outcome <> 'held' then
    return;
  end if;
  insert into tasks (account_id, id, key_id, model, kind, input, metadata, webhook_url, currency, pricing, held_units,
      estimate, created_at, deadline_at)
    values (p_account, p_id, p_key, p_model, p_kind, p_input, p_metadata, p_webhook_url, p_currency, p_pricing, p_held_units,
      p_estimate, p_now, p_deadline);
  perform engine_send('task.start', jsonb_build_object('account_id', p_account, 'task_id', p_id), null, p_id);
  if p_idempotency_key is not null then
    insert into idempotency_keys (account_id, key, body_hash, task_id, created_at)
      values (p_account, p_idempotency_key, p_body_hash, p_id, p_now)
      on conflict (account_id, key) do update
        set body_hash = excluded.body_hash, task_id = excluded.task_id, created_at = excluded.created_at;
  end if;
  outcome := 'created';
  task_id := p_id;
end $$;
