-- Webhooks: a delivery is written, with its job, by the call that ends the task. The engine's job says
-- when an attempt is due, by the database's clock; these tables say whether there is a place for it.
--
-- In flight, over all nodes: at most 4 per lane (one account, one URL without its query), 1 if the
-- last attempt there timed out, and 64 per host, of which retries leave a quarter to first attempts. A
-- delivery that finds no place gives up its job and is parked; whoever ends an attempt hands the place
-- on, with a new job, in the same call. So 10,000 deliveries for a dead receiver are 10,000 quiet rows.
--
-- Whatever counts places holds the lock of their host first; hosts are locked in the order of their names.

-- room: accounts
alter table accounts
  add column webhook_secret_before text check (webhook_secret_before like 'whsec\_%'),
  add column webhook_secret_rotated_at timestamptz,
  add check ((webhook_secret_before is null) = (webhook_secret_rotated_at is null));

-- room: webhooks
create table deliveries (
  account_id text not null references accounts,
  id text not null,
  task_id text,               -- null: a test payload
  event text not null check (event in ('task.succeeded', 'task.failed')),
  url text not null,
  body text not null,         -- sent as it is, at every attempt
  lane text not null,
  host text not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'dropped')),
  attempts int not null default 0 check (attempts >= 0),
  failures int not null default 0 check (failures between 0 and attempts), -- attempts of the schedule that failed
  by_hand boolean not null default false, -- the attempt that waits was asked for: it is outside the schedule
  jobs int not null default 1 check (jobs >= 1), -- so far; only the newest may make an attempt, the others are stale
  next_at timestamptz,        -- what people are told; the job knows when
  created_at timestamptz not null,
  delivered_at timestamptz,
  ended_at timestamptz,
  primary key (account_id, id),
  check ((state = 'waiting') = (next_at is not null)),
  check (state <> 'delivered' or delivered_at is not null),
  check (state = 'waiting' or ended_at is not null)
);
create unique index deliveries_of_task on deliveries (account_id, task_id) where task_id is not null;
create index deliveries_waiting on deliveries (next_at) where state = 'waiting';
create index deliveries_ended on deliveries (ended_at) where state <> 'waiting';

-- room: webhooks
create table delivery_attempts (
  account_id text not null,
  delivery_id text not null,
  number int not null check (number >= 1),
  started_at timestamptz not null,
  ended_at timestamptz not null,
  duration_ms int not null check (duration_ms >= 0),
  status int,                 -- null: no answer, see error
  error text,
  answer text,                -- its first 2 kB
  primary key (account_id, delivery_id, number),
  foreign key (account_id, delivery_id) references deliveries on delete cascade,
  check (status is not null or error is not null)
);

-- One row per attempt in flight, and per place that was handed on to a job not yet begun.
-- room: webhooks
create table places (
  account_id text not null,
  delivery_id text not null,
  lane text not null,
  host text not null,
  claim text,                 -- names the worker's hold on the attempt; null: handed on
  taken_at timestamptz not null,
  primary key (account_id, delivery_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index places_by_lane on places (lane);
create index places_by_host on places (host, account_id);

-- Deliveries that wait for a place, without a job. queue_for: what is full.
-- room: webhooks
create table parked (
  account_id text not null,
  delivery_id text not null,
  lane text not null,
  host text not null,
  retry boolean not null,
  since timestamptz not null,
  queue_for text not null check (queue_for in ('lane', 'host')),
  primary key (account_id, delivery_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index parked_by_lane on parked (lane, queue_for, retry, since);
create index parked_by_host on parked (host, queue_for, account_id, retry, since);

-- Lanes whose last attempt timed out.
-- room: webhooks
create table slow_lanes (
  lane text primary key,
  since timestamptz not null
);
create index slow_lanes_by_age on slow_lanes (since);

-- Writes a delivery and the job of its first attempt, in the caller's transaction.
-- room: webhooks
create function queue_delivery(
  p_now timestamptz, p_account text, p_id text, p_task text, p_event text, p_url text, p_body text, p_lane text, p_host text
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, task_id, event, url, body, lane, host, next_at, created_at)
    values (p_account, p_id, p_task, p_event, p_url, p_body, p_lane, p_host, p_now, p_now);
  perform send_delivery_job('delivery.send', p_account, p_id, 1, 0);
end $$;

-- Sends another job for a delivery; from now on those before it are stale. First attempts and later ones
-- have queues, and so slots, of their own: none waits behind a retry.
-- room: webhooks
create function send_next_job(p_account text, p_id text, p_after_ms float8) returns void language plpgsql as $$
declare
  d deliveries;
begin
  update deliveries x set jobs = x.jobs + 1 where x.account_id = p_account and x.id = p_id returning * into d;
  if d.id is not null then
    perform send_delivery_job(case d.attempts when 0 then 'delivery.send' else 'delivery.retry' end,
      p_account, p_id, d.jobs, p_after_ms);
  end if;
end $$;

-- room: webhooks
create function send_delivery_job(p_queue text, p_account text, p_id text, p_job int, p_after_ms float8)
  returns void language plpgsql as $$
begin
  perform engine_send(p_queue, jsonb_build_object('account_id', p_account, 'delivery_id', p_id, 'job', p_job),
    case when p_after_ms > 0 then pgboss.job_now() + p_after_ms * interval '1 ms' end, p_id);
end $$;

-- room: webhooks
create function lock_hosts(p_hosts text[]) returns void language plpgsql as $$
declare
  h text;
begin
  for h in select distinct u.h from unnest(p_hosts) as u (h) order by 1 loop
    perform pg_advisory_xact_lock(hashtextextended('host ' || h, 0));
  end loop;
end $$;

-- Is there room for one more in the lane? p_more: those of it who queue for the host already.
-- room: webhooks
create function lane_has_room(p_lane text, p_retry boolean, p_more bigint) returns boolean language plpgsql as $$
declare
  room int := case when exists (select from slow_lanes s where s.lane = p_lane) then 1 when p_retry then 3 else 4 end;
begin
  return (select count(*) from places p where p.lane = p_lane) + p_more < room;
end $$;

-- room: webhooks
create function host_has_room(p_host text, p_retry boolean) returns boolean language plpgsql as $$
begin
  return (select count(*) from places p where p.host = p_host) < case when p_retry then 48 else 64 end;
end $$;

-- Takes places for attempts that are due: p_items [{account_id, id, job, claim}]. answer: send (the
-- place is the claim's), parked (whoever gives up a place sends a new job), stale (nothing to do). A
-- place that is taken already was handed on, or its worker is believed dead: the engine gave the job
-- to somebody else. The settings are for plans that were made while the tables were empty.
-- room: webhooks
create function begin_deliveries(p_now timestamptz, p_items jsonb) returns table (
  account_id text, id text, answer text, number int, event text, url text, body text,
  webhook_secret text, webhook_secret_before text, webhook_secret_rotated_at timestamptz
) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  v_hosts text[];
begin
  -- A place that a crash of the server forgets is taken again by the job that comes back.
  perform set_config('synchronous_commit', 'off', true);
  v_hosts := array(select x.host from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id);
  perform lock_hosts(v_hosts);
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, job int, claim text) loop
    account_id := i.account_id;
    id := i.id;
    select * into d from deliveries x where x.account_id = i.account_id and x.id = i.id;
    answer := case when d.state = 'waiting' and d.jobs = i.job then take_place(d, i.claim, p_now) else 'stale' end;
    if answer = 'send' then
      number := d.attempts + 1;
      event := d.event;
      url := d.url;
      body := d.body;
      select a.webhook_secret, a.webhook_secret_before, a.webhook_secret_rotated_at
        into webhook_secret, webhook_secret_before, webhook_secret_rotated_at from accounts a where a.id = i.account_id;
    end if;
    return next;
  end loop;
end $$;

-- The caller holds the lock of the host. Answers send or parked. `retry <= v_retry`: nobody waits behind
-- retries but retries; an index finds it, however many of them there are. Who queues longest is told by the
-- database's clock, since nodes may differ.
-- room: webhooks
create function take_place(d deliveries, p_claim text, p_now timestamptz) returns text language plpgsql as $$
declare
  v_retry boolean := d.attempts > 0 and not d.by_hand;
  v_queued bigint;
  v_full text;
begin
  update places p set claim = p_claim, taken_at = p_now where p.account_id = d.account_id and p.delivery_id = d.id;
  if found then
    return 'send';
  end if;
  select count(*) into v_queued from parked k where k.lane = d.lane and k.queue_for = 'host' and k.retry <= v_retry;
  v_full := case
    when not lane_has_room(d.lane, v_retry, v_queued)
      or exists (select from parked k where k.lane = d.lane and k.queue_for = 'lane' and k.retry <= v_retry) then 'lane'
    when not host_has_room(d.host, v_retry)
      or exists (select from parked k where k.host = d.host and k.queue_for = 'host' and k.retry <= v_retry) then 'host' end;
  if v_full is null then
    delete from parked k where k.account_id = d.account_id and k.delivery_id = d.id;
    insert into places (account_id, delivery_id, lane, host, claim, taken_at)
      values (d.account_id, d.id, d.lane, d.host, p_claim, p_now);
    return 'send';
  end if;
  insert into parked (account_id, delivery_id, lane, host, retry, since, queue_for)
    values (d.account_id, d.id, d.lane, d.host, v_retry, clock_timestamp(), v_full)
    on conflict do nothing;
  return 'parked';
end $$;

-- Writes down how attempts ended and hands their places on. p_items [{account_id, id, claim, started_at,
-- ended_at, duration_ms, status, error, answer, delivered, timed_out}]; p_delays_ms: the schedule. Who has
-- lost the claim changes nothing. state: as in deliveries, or lost.
-- room: webhooks
create function end_deliveries(p_now timestamptz, p_items jsonb, p_delays_ms float8[])
  returns table (account_id text, id text, state text, next_at timestamptz) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  v_hosts text[];
  v_host text;
  v_lanes text[];
  v_lane text;
begin
  v_hosts := array(select x.host from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id);
  perform lock_hosts(v_hosts);
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, claim text, started_at timestamptz,
      ended_at timestamptz, duration_ms int, status int, error text, answer text, delivered boolean, timed_out boolean) loop
    d := null;
    delete from places p where p.account_id = i.account_id and p.delivery_id = i.id and p.claim = i.claim;
    if found then
      d := end_attempt(i.account_id, i.id, i.ended_at, i.delivered, p_delays_ms);
    end if;
    if d.id is not null then
      insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, status, error, answer)
        values (i.account_id, i.id, d.attempts, i.started_at, i.ended_at, i.duration_ms, i.status, i.error, i.answer);
      if i.timed_out then
        insert into slow_lanes (lane, since) values (d.lane, p_now) on conflict (lane) do update set since = p_now;
      else
        delete from slow_lanes s where s.lane = d.lane;
      end if;
      v_lanes := v_lanes || d.lane;
    end if;
    return query select i.account_id, i.id, coalesce(d.state, 'lost'), d.next_at;
  end loop;
  for v_lane in select distinct u.l from unnest(v_lanes) as u (l) loop
    perform queue_for_host(v_lane);
  end loop;
  for v_host in select distinct u.h from unnest(v_hosts) as u (h) order by 1 loop
    perform hand_on(v_host, p_now);
  end loop;
end $$;

-- An attempt was made. A failed one of the schedule is followed by the next; one asked for by hand
-- leaves the schedule as it was, and a delivery that has arrived once stays delivered. Null: it is gone.
-- room: webhooks
create function end_attempt(p_account text, p_id text, p_ended_at timestamptz, p_delivered boolean, p_delays_ms float8[])
  returns deliveries language plpgsql as $$
declare
  d deliveries;
begin
  select * into d from deliveries x where x.account_id = p_account and x.id = p_id for update;
  if d.id is null then
    return null;
  end if;
  d.attempts := d.attempts + 1;
  if p_delivered then
    d.delivered_at := coalesce(d.delivered_at, p_ended_at);
  elsif not d.by_hand then
    d.failures := d.failures + 1;
  end if;
  d.by_hand := false;
  d.state := case when d.delivered_at is not null then 'delivered'
    when d.failures between 1 and cardinality(p_delays_ms) then 'waiting' else 'dropped' end;
  d.next_at := case d.state when 'waiting' then p_ended_at + p_delays_ms[d.failures] * interval '1 ms' end;
  d.ended_at := case when d.state <> 'waiting' then p_ended_at end;
  update deliveries x set attempts = d.attempts, failures = d.failures, by_hand = d.by_hand, state = d.state,
      next_at = d.next_at, delivered_at = d.delivered_at, ended_at = d.ended_at
    where x.account_id = p_account and x.id = p_id;
  if d.state = 'waiting' then
    perform send_next_job(p_account, p_id, p_delays_ms[d.failures]);
  end if;
  return d;
end $$;

-- Those who queue for the lane go on to queue for its host, as many as the lane has room for.
-- room: webhooks
create function queue_for_host(p_lane text) returns void language plpgsql as $$
declare
  k parked;
  v_queued bigint;
begin
  loop
    select * into k from parked x where x.lane = p_lane and x.queue_for = 'lane' order by x.retry, x.since limit 1;
    exit when k.lane is null;
    select count(*) into v_queued from parked x where x.lane = p_lane and x.queue_for = 'host' and x.retry <= k.retry;
    exit when not lane_has_room(p_lane, k.retry, v_queued);
    update parked x set queue_for = 'host' where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
  end loop;
end $$;

-- Hands free places of a host on: first attempts first, and of these the account that has the fewest there.
-- The accounts that queue are found one by one in the index, however many deliveries each of them has. Who
-- finds the lane full meanwhile, by first attempts that went ahead or because it has become slow, goes back to it.
-- room: webhooks
create function hand_on(p_host text, p_now timestamptz) returns void language plpgsql as $$
declare
  k parked;
begin
  while host_has_room(p_host, false) loop
    with recursive queued (account_id) as (
      (select x.account_id from parked x where x.host = p_host and x.queue_for = 'host' order by x.account_id limit 1)
      union all
      select (select x.account_id from parked x where x.host = p_host and x.queue_for = 'host' and x.account_id > q.account_id
        order by x.account_id limit 1)
      from queued q where q.account_id is not null)
    select first.* into k from queued q, lateral (
        select * from parked x where x.host = p_host and x.queue_for = 'host' and x.account_id = q.account_id
          order by x.retry, x.since limit 1) first
      where q.account_id is not null
      order by first.retry, (select count(*) from places p where p.host = p_host and p.account_id = q.account_id), first.since
      limit 1;
    exit when k.account_id is null or not host_has_room(p_host, k.retry);
    if not lane_has_room(k.lane, k.retry, 0) then
      update parked x set queue_for = 'lane' where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
      continue;
    end if;
    delete from parked x where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
    insert into places (account_id, delivery_id, lane, host, taken_at)
      values (k.account_id, k.delivery_id, k.lane, p_host, p_now);
    perform send_next_job(k.account_id, k.delivery_id, 0);
  end loop;
end $$;

-- Sends a delivery once more, now, outside the schedule. answer: sent, missing, or busy (its first
-- attempt is still to come, or one is under way).
-- room: webhooks
create function resend_delivery(p_now timestamptz, p_account text, p_id text) returns text language plpgsql as $$
declare
  d deliveries;
begin
  perform lock_hosts(array(select x.host from deliveries x where x.account_id = p_account and x.id = p_id));
  select * into d from deliveries x where x.account_id = p_account and x.id = p_id for update;
  if d.id is null then
    return 'missing';
  elsif d.attempts = 0 or d.by_hand
      or exists (select from places p where p.account_id = p_account and p.delivery_id = p_id)
      or exists (select from parked k where k.account_id = p_account and k.delivery_id = p_id) then
    return 'busy';
  end if;
  update deliveries x set state = 'waiting', by_hand = true, next_at = p_now, ended_at = null
    where x.account_id = p_account and x.id = p_id;
  perform send_next_job(p_account, p_id, 0);
  return 'sent';
end $$;

-- Writes a test payload that its caller sends at once: the place is taken, whatever else is in flight.
-- room: webhooks
create function open_test_delivery(
  p_now timestamptz, p_account text, p_id text, p_url text, p_body text, p_lane text, p_host text, p_claim text
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, event, url, body, lane, host, by_hand, next_at, created_at)
    values (p_account, p_id, 'task.succeeded', p_url, p_body, p_lane, p_host, true, p_now, p_now);
  insert into places (account_id, delivery_id, lane, host, claim, taken_at) values (p_account, p_id, p_lane, p_host, p_claim, p_now);
end $$;

-- The net under it all, for what a restored backup or an operator's hand has torn: places without a job
-- are free again, and what waits without a job, a place or a line gets a job. Answers how many did.
-- p_settled: what is younger may still be under way. Takes no lock of a host, and leaves what is too much for
-- one call to the next.
-- room: webhooks
create function rescue_deliveries(p_now timestamptz, p_settled timestamptz) returns int language plpgsql
  set enable_seqscan = off as $$
declare
  v_sent int;
begin
  delete from places p where p.taken_at < p_settled - interval '60 seconds'
    and not exists (select from engine_live_keys() live where live.key = p.delivery_id);
  perform send_next_job(d.account_id, d.id, extract(epoch from d.next_at - p_now) * 1000)
    from deliveries d
    where d.state = 'waiting' and d.created_at < p_settled
      and not exists (select from engine_live_keys() live where live.key = d.id)
      and not exists (select from places p where p.account_id = d.account_id and p.delivery_id = d.id)
      and not exists (select from parked k where k.account_id = d.account_id and k.delivery_id = d.id)
    limit 10000;
  get diagnostics v_sent = row_count;
  return v_sent;
end $$;

-- Moves on what queues at one host, in case nobody else does. One call per host: each holds its lock alone.
-- room: webhooks
create function move_lines(p_host text, p_now timestamptz) returns void language plpgsql set enable_seqscan = off as $$
declare
  v_lane text;
begin
  perform lock_hosts(array[p_host]);
  for v_lane in select distinct k.lane from parked k where k.host = p_host and k.queue_for = 'lane' loop
    perform queue_for_host(v_lane);
  end loop;
  perform hand_on(p_host, p_now);
end $$;

drop function finish_task;
-- Ends a task as before, and now with its webhook: p_delivery {id, lane, host} if it has a webhook_url.
-- room: tasks
create function finish_task(
  p_now timestamptz, p_account text, p_id text, p_claim text, p_seen_started_at timestamptz, p_started_at timestamptz,
  p_status text, p_cost bigint, p_measured bigint, p_units jsonb, p_error_type text, p_error_message text,
  p_counts boolean, p_body text, p_files jsonb, p_attempt_state text, p_attempt_reason text, p_upstream_cost text,
  p_delivery jsonb
) returns text language plpgsql as $$
declare
  t record;
  open_claim text;
  closed record;
begin
  select started_at, completed_at, webhook_url into strict t from tasks where account_id = p_account and id = p_id for update;
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
  if t.webhook_url is not null then
    perform queue_delivery(p_now, p_account, p_delivery ->> 'id', p_id, 'task.' || p_status, t.webhook_url, p_body,
      p_delivery ->> 'lane', p_delivery ->> 'host');
  end if;
  return 'finished';
end $$;
