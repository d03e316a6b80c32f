-- Creates a task: its hold, its row and its job, or nothing. p_task has the columns of tasks but input, which may be
-- long; p_once is its Idempotency-Key, {key, body_hash, shared_key, account_key} (find_repeated), or null; nodes of the
-- version before give no shared_key. Locks key and shared_key without waiting, then the account's balance. Returns outcome: created; replayed or mismatched (the key was seen before, with the same or another body);
-- in_flight (the key's task is being created); paused (too many failures, retry_after in seconds); insufficient;
-- over_limit.
create or replace function insert_task(
  p_task jsonb, p_input text, p_failures_max int, p_once jsonb,
  out outcome text, out task_id text, out retry_after int, out available bigint, out remaining bigint
) language plpgsql as $$
declare
  t constant tasks := jsonb_populate_record(null::tasks, p_task);
  once constant idempotency_keys := jsonb_populate_record(null::idempotency_keys, p_once);
  seen idempotency_keys;
  paused timestamptz;
begin
  if once.key is not null then
    if not pg_try_advisory_xact_lock(hashtextextended(t.account_id || ' ' || once.key, 0))
      or not pg_try_advisory_xact_lock(
        hashtextextended(t.account_id || ' ' || coalesce(p_once ->> 'shared_key', once.key), 0)) then
      outcome := 'in_flight';
      return;
    end if;
    select * into seen from find_repeated(t.account_id, t.key_id, p_once, t.created_at);
    if found then
      outcome := case when seen.body_hash = once.body_hash then 'replayed' else 'mismatched' end;
      task_id := seen.task_id;
      return;
    end if;
  end if;

  paused := paused_until(t.created_at, t.account_id, p_failures_max);
  if paused is not null then
    outcome := 'paused';
    retry_after := greatest(1, ceil(extract(epoch from paused - t.created_at)));
    return;
  end if;

  select h.outcome, h.available, h.remaining into outcome, available, remaining
    from hold_money(t.created_at, null, jsonb_build_object('account_id', t.account_id, 'key_id', t.key_id, 'ref', t.id,
      'amount', t.estimate, 'model', t.model, 'kind', t.kind), null) h;
  if outcome <> 'held' then
    return;
  end if;
  insert into tasks (account_id, id, key_id, model, kind, input, metadata, webhook_url, traceparent, currency, pricing,
      held_units, estimate, created_at, deadline_at)
    values (t.account_id, t.id, t.key_id, t.model, t.kind, p_input, t.metadata, t.webhook_url, t.traceparent,
      t.currency, t.pricing, t.held_units, t.estimate, t.created_at, t.deadline_at);
  perform engine_send('task.start', jsonb_build_object('account_id', t.account_id, 'task_id', t.id), null, t.id);
  if once.key is not null then
    insert into idempotency_keys (account_id, key, body_hash, task_id, created_at)
      values (t.account_id, once.key, once.body_hash, t.id, t.created_at)
      on conflict (account_id, key) do update
        set body_hash = excluded.body_hash, task_id = excluded.task_id, created_at = excluded.created_at;
  end if;
  outcome := 'created';
  task_id := t.id;
end $$;
