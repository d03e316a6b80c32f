-- Ends a task, once: status, output, money, and its webhook's delivery. Locks the task, its open attempt, the routes that
-- its provider said are full, and the account's balance. Returns finished, or published if it was delivered to endpoints of its account, too; final (somebody else was first); changed (the row moved on: build p_body anew);
-- taken (the attempt is no longer that one).
--
-- p_end has account_id and id of the task; status, cost, error_type, error_message, counts_as_failure, files and
-- started_at as they are in p_body; seen_started_at, the started_at of the row that p_body was made of; measured, the
-- cost before it is cut to the hold (the difference is the operator's loss), and units. claim is of the open attempt
-- that ends with the task: '' for none may be open, null for whichever there is; attempt_state and attempt_reason are
-- its end, attempt_message the upstream's own words, null if they are error_message. upstream is as close_hold takes it, without provider and route, null if it is not known what the upstream
-- charges; upstream_cost is that as a text for people. delivery is {id, lane, host, traceparent} if the task has a webhook_url; event_id is for
-- the endpoints of its account. Nodes of the version before send none, and know no published.
create or replace function end_task(p_now timestamptz, p_end jsonb, p_body text) returns text language plpgsql as $$
declare
  e record;
  t record;
  tried record;
  used jsonb;
  closed record;
  v_deliveries int := 0;
begin
  select * into e from jsonb_to_record(p_end) as x (account_id text, id text, claim text, seen_started_at timestamptz,
    started_at timestamptz, status text, cost bigint, measured bigint, units jsonb, error_type text, error_message text,
    counts_as_failure boolean, files jsonb, attempt_state text, attempt_reason text, attempt_message text, upstream jsonb,
    upstream_cost text, delivery jsonb, event_id text);
  select started_at, completed_at, webhook_url, model, key_id, metadata, traceparent into strict t from tasks
    where account_id = e.account_id and id = e.id for update;
  if t.completed_at is not null then
    return 'final';
  elsif t.started_at is distinct from e.seen_started_at then
    return 'changed';
  end if;
  select claim, provider, route into tried from attempts
    where account_id = e.account_id and task_id = e.id and ended_at is null for update;
  if e.claim is not null and e.claim <> coalesce(tried.claim, '') then
    return 'taken';
  end if;
  if tried.claim is not null and e.attempt_state <> 'not_started' then
    used := coalesce(e.upstream, '{"basis": "unknown"}')
      || jsonb_build_object('provider', tried.provider, 'route', tried.route);
  end if;
  update tasks set status = e.status, started_at = e.started_at, cost = e.cost, error_type = e.error_type,
      error_message = e.error_message, counts_as_failure = e.counts_as_failure, body = p_body, files = e.files,
      completed_at = p_now
    where account_id = e.account_id and id = e.id;
  update attempts set state = e.attempt_state, reason = e.attempt_reason,
      message = coalesce(e.attempt_message, e.error_message),
      upstream_cost = e.upstream_cost, upstream_amount = (used ->> 'cost')::bigint, ended_at = p_now
    where account_id = e.account_id and task_id = e.id and ended_at is null;
  delete from throttled_tasks k where k.account_id = e.account_id and k.task_id = e.id;
  if used is not null then
    perform ask_full_routes(p_now, tried.provider);
  end if;
  select c.outcome, c.charged into closed
    from close_hold(p_now, jsonb_build_object('account_id', e.account_id, 'ref', e.id,
      'cost', case e.status when 'succeeded' then e.measured end, 'units', e.units, 'upstream', used)) c;
  if closed.outcome = 'closed' then
    raise exception 'task % is not final but its hold is closed', e.id;
  elsif closed.charged <> e.cost then
    raise exception 'task % costs % but % was charged', e.id, e.cost, closed.charged;
  end if;
  if t.webhook_url is not null then
    perform add_delivery(p_now, e.delivery || jsonb_build_object('account_id', e.account_id, 'task_id', e.id,
      'event', 'task.' || e.status, 'url', t.webhook_url, 'body', p_body));
  end if;
  if exists (select from webhook_endpoints w where w.account_id = e.account_id) then
    v_deliveries := publish_event(p_now, jsonb_build_object('account_id', e.account_id,
      'id', coalesce(e.event_id, 'evt_' || substr(e.id, 6)),
      'type', case when e.error_type = 'canceled' then 'task.canceled' else 'task.' || e.status end, 'task_id', e.id,
      'model', t.model, 'key_id', t.key_id, 'metadata', t.metadata, 'traceparent', t.traceparent), p_body);
  end if;
  return case when v_deliveries > 0 and e.event_id is not null then 'published' else 'finished' end;
end $$;
