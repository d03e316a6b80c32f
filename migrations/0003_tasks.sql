-- Tasks: created and finished by one call each, so that neither holds a balance over round trips.

-- room: tasks
create table tasks (
  account_id text not null references accounts,
  id text not null,
  key_id text not null references api_keys,
  model text not null,
  kind text not null check (kind in ('image', 'video', 'audio')),
  -- JSON as text: jsonb refuses NUL and lone surrogates, which are a caller's right to send.
  input text not null,
  metadata text not null,
  webhook_url text,
  currency text not null,
  pricing jsonb not null,    -- frozen at creation: price rows and rate
  held_units jsonb not null, -- unit → decimal text, what the estimate was made of
  estimate bigint not null check (estimate >= 0),
  status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed')),
  cost bigint not null default 0 check (cost >= 0 and cost <= estimate),
  error_type text check (error_type in
    ('upstream_error', 'timeout', 'content_policy_violation', 'invalid_request', 'canceled', 'internal_error')),
  error_message text,
  counts_as_failure boolean not null default false, -- toward the 25 in 24 hours
  body text,                 -- the final bytes of GET and of the webhook, made once
  files jsonb not null default '[]', -- storage keys of the output
  files_removed_at timestamptz,
  created_at timestamptz not null,
  started_at timestamptz,
  completed_at timestamptz,
  deadline_at timestamptz not null,  -- the sweep ends what is not finished by then
  primary key (account_id, id),
  check ((status in ('succeeded', 'failed')) = (completed_at is not null)),
  check ((completed_at is null) = (body is null)),
  check ((status = 'failed') = (error_type is not null)),
  check (status = 'succeeded' or cost = 0),
  check (status <> 'running' or started_at is not null),
  check (status = 'failed' or not counts_as_failure)
);
create index tasks_unfinished on tasks (deadline_at) where completed_at is null;
create index tasks_counted on tasks (account_id, completed_at) where counts_as_failure;
create index tasks_with_files on tasks (completed_at) where files_removed_at is null and files <> '[]';
create index tasks_by_completion on tasks (completed_at) where completed_at is not null;

-- One try of a route: written down before the upstream is called.
-- room: tasks
create table attempts (
  account_id text not null,
  task_id text not null,
  number int not null check (number >= 1),
  route text not null,
  provider text not null,
  state text not null default 'submitting'
    check (state in ('submitting', 'accepted', 'done', 'failed', 'not_started', 'ambiguous', 'canceled')),
  reason text,
  message text,
  run_ref text, -- JSON: the upstream's name for the run, opaque to all but its adapter
  upstream_cost text,
  created_at timestamptz not null,
  ended_at timestamptz,
  primary key (account_id, task_id, number),
  foreign key (account_id, task_id) references tasks on delete cascade,
  check ((state in ('submitting', 'accepted')) = (ended_at is null)),
  check (state <> 'accepted' or run_ref is not null)
);
-- One open attempt per task: two workers can never have a task at two upstreams knowingly.
create unique index attempts_open on attempts (account_id, task_id) where ended_at is null;

-- room: tasks
create table idempotency_keys (
  account_id text not null references accounts,
  key text not null check (length(key) between 1 and 255),
  body_hash bytea not null,
  task_id text not null,
  created_at timestamptz not null,
  primary key (account_id, key)
);
create index idempotency_keys_by_time on idempotency_keys (created_at);

-- When the account may create tasks again; null if it may now. A run that started and failed counts
-- for 24 hours, and with p_failures_max of them the oldest of these has to grow old first.
-- room: tasks
create function paused_until(p_now timestamptz, p_account text, p_failures_max int) returns timestamptz
stable language sql return (
  select t.completed_at + interval '24 hours' from tasks t
    where t.account_id = p_account and t.counts_as_failure and t.completed_at > p_now - interval '24 hours'
    order by t.completed_at desc offset p_failures_max - 1 limit 1
);

-- Creates a task: hold, row and job, or nothing. outcome: created; replayed and mismatched
-- (Idempotency-Key seen before, with the same or another body); in_flight (being created right now);
-- paused (25 failures, retry_after in seconds); insufficient; over_limit.
-- room: tasks
create function create_task(
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

-- Notes what the upstream said of a run that goes on, and the start of the task the first time it is
-- seen running; p_poll_after_ms sends the poll job in the same transaction. False if the attempt was
-- closed in between. Locks the task before the attempt, as finish_task does.
-- room: tasks
create function accept_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_run_ref text, p_running boolean, p_poll_after_ms int
) returns boolean language plpgsql as $$
begin
  perform from tasks where account_id = p_account and id = p_id and completed_at is null for update;
  if not found then
    return false;
  end if;
  update attempts set state = 'accepted', run_ref = p_run_ref
    where account_id = p_account and task_id = p_id and number = p_number and ended_at is null;
  if not found then
    return false;
  end if;
  if p_running then
    update tasks set status = 'running', started_at = p_now
      where account_id = p_account and id = p_id and started_at is null;
  end if;
  if p_poll_after_ms is not null then
    perform engine_send('task.poll', jsonb_build_object('account_id', p_account, 'task_id', p_id),
      pgboss.job_now() + p_poll_after_ms * interval '1 ms', p_id);
  end if;
  return true;
end $$;

-- Ends a task, once: status, output, money. The caller built p_body from a row whose started_at was
-- p_seen_started_at; p_started_at is the one that p_body tells. outcome: finished; final (somebody
-- else was first); changed (the row moved on: build p_body anew).
-- room: tasks
create function finish_task(
  p_now timestamptz, p_account text, p_id text, p_seen_started_at timestamptz, p_started_at timestamptz, p_status text,
  p_cost bigint, p_units jsonb, p_error_type text, p_error_message text, p_counts boolean, p_body text, p_files jsonb,
  p_attempt_state text, p_attempt_reason text, p_upstream_cost text
) returns text language plpgsql as $$
declare
  t tasks;
  closed text;
begin
  select * into strict t from tasks where account_id = p_account and id = p_id for update;
  if t.completed_at is not null then
    return 'final';
  elsif t.started_at is distinct from p_seen_started_at then
    return 'changed';
  end if;
  update tasks set status = p_status, started_at = p_started_at, cost = p_cost, error_type = p_error_type, error_message = p_error_message,
      counts_as_failure = p_counts, body = p_body, files = p_files, completed_at = p_now
    where account_id = p_account and id = p_id;
  update attempts set state = p_attempt_state, reason = p_attempt_reason, message = p_error_message,
      upstream_cost = p_upstream_cost, ended_at = p_now
    where account_id = p_account and task_id = p_id and ended_at is null;
  select c.outcome into closed
    from money_close(p_now, p_account, p_id, case p_status when 'succeeded' then p_cost end, false, p_units) c;
  if closed = 'closed' then
    raise exception 'task % is not final but its hold is closed', p_id;
  end if;
  return 'finished';
end $$;
