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
  route_settings text not null, -- JSON: the route as it was at the submit; no reload changes a run
  claim text not null, -- names the worker's hold on this try: who lost it writes nothing more
  -- abandoned: the task ended without its run, which the poll job is to stop upstream
  state text not null default 'submitting' check (state in
    ('submitting', 'accepted', 'done', 'failed', 'not_started', 'ambiguous', 'canceled', 'abandoned')),
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

-- The four functions below are safe to repeat when their answer was lost, and refuse a worker whose
-- claim on the try is no longer the one in the row. Who locks both rows locks the task's first.

-- Writes a try down before the upstream is called. False if the task is final by now, or another
-- try of it is open: the share lock waits for a finish that is under way.
-- room: tasks
create function open_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_route text, p_provider text, p_settings text
) returns boolean language plpgsql as $$
begin
  perform from tasks where account_id = p_account and id = p_id and completed_at is null for share;
  if not found then
    return false;
  end if;
  insert into attempts (account_id, task_id, number, route, provider, route_settings, claim, created_at)
    values (p_account, p_id, p_number, p_route, p_provider, p_settings, p_claim, p_now)
    on conflict do nothing;
  return found or exists (select from attempts
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null);
end $$;

-- Hands an open try over to another worker: from now on the old claim is refused. False if somebody
-- else was first, or the upstream has accepted in between.
-- room: tasks
create function claim_attempt(p_account text, p_id text, p_number int, p_seen_claim text, p_claim text)
  returns boolean language plpgsql as $$
begin
  update attempts set claim = p_claim
    where account_id = p_account and task_id = p_id and number = p_number
      and claim in (p_seen_claim, p_claim) and state = 'submitting';
  return found;
end $$;

-- Notes what the upstream said of a run that goes on, and the start of the task the first time it is
-- seen running. The first note sends the poll job in the same transaction. False if the try was
-- closed or claimed in between, or its run_ref is not p_seen_ref any more.
-- room: tasks
create function accept_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_seen_ref text, p_run_ref text,
  p_running boolean, p_poll_after_ms int
) returns boolean language plpgsql as $$
begin
  perform from tasks where account_id = p_account and id = p_id and completed_at is null for update;
  if not found then
    return false;
  end if;
  update attempts set state = 'accepted', run_ref = p_run_ref
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
      and run_ref is not distinct from p_seen_ref;
  if not found then
    return exists (select from attempts
      where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null
        and run_ref = p_run_ref);
  end if;
  if p_running then
    update tasks set status = 'running', started_at = p_now
      where account_id = p_account and id = p_id and started_at is null;
  end if;
  if p_seen_ref is null then
    perform engine_send('task.poll', jsonb_build_object('account_id', p_account, 'task_id', p_id),
      pgboss.job_now() + p_poll_after_ms * interval '1 ms', p_id);
  end if;
  return true;
end $$;

-- Closes a try that did not lead to a run; with p_send_start the next routes get a job. False if it
-- was closed otherwise, or claimed, in between.
-- room: tasks
create function close_attempt(
  p_now timestamptz, p_account text, p_id text, p_number int, p_claim text, p_state text, p_reason text, p_message text,
  p_send_start boolean
) returns boolean language plpgsql as $$
begin
  update attempts set state = p_state, reason = p_reason, message = p_message, ended_at = p_now
    where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim and ended_at is null;
  if not found then
    return exists (select from attempts
      where account_id = p_account and task_id = p_id and number = p_number and claim = p_claim
        and state = p_state and ended_at = p_now);
  end if;
  if p_send_start then
    perform engine_send('task.start', jsonb_build_object('account_id', p_account, 'task_id', p_id), null, p_id);
  end if;
  return true;
end $$;

-- Ends a task, once: status, output, money. The caller built p_body from a row whose started_at was
-- p_seen_started_at; p_started_at is the one that p_body tells. p_claim: of the open try that ends with
-- the task, '' for none may be open, null for whatever there is. p_measured is the cost before it is
-- cut to the hold; the difference is the operator's loss. outcome: finished; final (somebody else was
-- first); changed (the row moved on: build p_body anew); taken (the try is no longer that one).
-- room: tasks
create function finish_task(
  p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz,
  p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text,
  p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text
) returns text language plpgsql as $$
declare
  t record;
  open_claim text;
  closed record;
begin
  select started_at, completed_at into strict t from tasks where account_id = p_account and id = p_id for update;
  if t.completed_at is not null then
    return 'final';
  elsif t.started_at is distinct from p_seen_started_at then
    return 'changed';
  end if;
  select claim into open_claim from attempts
    where account_id = p_account and task_id = p_id and ended_at is null for update;
  if p_claim is not null and p_claim <> coalesce(open_claim, '') then
    return 'taken';
  end if;
  update tasks set status = p_status, started_at = p_started_at, cost = p_cost, error_type = p_error_type,
      error_message = p_error_message, counts_as_failure = p_counts, body = p_body, files = p_files, completed_at = p_now
    where account_id = p_account and id = p_id;
  update attempts set state = p_attempt_state, reason = p_attempt_reason, message = p_error_message,
      upstream_cost = p_upstream_cost, ended_at = p_now
    where account_id = p_account and task_id = p_id and ended_at is null;
  select c.outcome, c.charged into closed
    from money_close(p_now, p_account, p_id, case p_status when 'succeeded' then p_measured end, false, p_units) c;
  if closed.outcome = 'closed' then
    raise exception 'task % is not final but its hold is closed', p_id;
  elsif closed.charged <> p_cost then
    raise exception 'task % costs % but % was charged', p_id, p_cost, closed.charged;
  end if;
  return 'finished';
end $$;
