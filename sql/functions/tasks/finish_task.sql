-- Ends a task, once: status, output, money, and its webhook's delivery. Locks the task, its open attempt and the
-- account's balance. Returns finished; final (somebody else was first); changed (the row moved on: build p_body anew);
-- taken (the attempt is no longer that one).
--
-- The caller built p_body from a row whose started_at was p_seen_started_at; p_started_at is the one that p_body has.
-- p_claim is of the open attempt that ends with the task: '' for none may be open, null for whichever there is.
-- p_measured is the cost before it is cut to the hold; the difference is the operator's loss. p_delivery is {id, lane,
-- host} if the task has a webhook_url. p_upstream is as money_close takes it, without provider and route; null if it is
-- not known what the upstream charges.
create or replace function finish_task(
  p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz,
  p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text,
  p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text,
  p_delivery jsonb, p_upstream jsonb default null
) returns text language plpgsql as $$
declare
  t record;
  tried record;
  used jsonb;
  closed record;
begin
  select started_at, completed_at, webhook_url into strict t from tasks where account_id = p_account and id = p_id for update;
  if t.completed_at is not null then
    return 'final';
  elsif t.started_at is distinct from p_seen_started_at then
    return 'changed';
  end if;
  select claim, provider, route into tried from attempts
    where account_id = p_account and task_id = p_id and ended_at is null for update;
  if p_claim is not null and p_claim <> coalesce(tried.claim, '') then
    return 'taken';
  end if;
  if tried.claim is not null and p_attempt_state <> 'not_started' then
    used := coalesce(p_upstream, '{"basis": "unknown"}') || jsonb_build_object('provider', tried.provider, 'route', tried.route);
  end if;
  update tasks set status = p_status, started_at = p_started_at, cost = p_cost, error_type = p_error_type,
      error_message = p_error_message, counts_as_failure = p_counts, body = p_body, files = p_files, completed_at = p_now
    where account_id = p_account and id = p_id;
  update attempts set state = p_attempt_state, reason = p_attempt_reason, message = p_error_message,
      upstream_cost = p_upstream_cost, upstream_amount = (used ->> 'cost')::bigint, ended_at = p_now
    where account_id = p_account and task_id = p_id and ended_at is null;
  select c.outcome, c.charged into closed
    from money_close(p_now, p_account, p_id, case p_status when 'succeeded' then p_measured end, false, p_units, used) c;
  if closed.outcome = 'closed' then
    raise exception 'task % is not final but its hold is closed', p_id;
  elsif closed.charged <> p_cost then
    raise exception 'task % costs % but % was charged', p_id, p_cost, closed.charged;
  end if;
  if t.webhook_url is not null then
    perform queue_delivery(p_now, p_account, p_delivery ->> 'id', p_id, 'task.' || p_status, t.webhook_url, p_body,
      p_delivery ->> 'lane', p_delivery ->> 'host');
  end if;
  return 'finished';
end $$;
