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
  primary key (account_id, delivery_id)
);
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
);
create index parked_by_lane on parked (lane, queue_for, retry, since);
create index parked_by_host on parked (host, account_id, retry, since) where queue_for = 'host';

-- room: webhooks
create table slow_lanes (
  lane text primary key
);

-- Writes a delivery and the job of its first attempt, in the caller's transaction.
-- room: webhooks
create function queue_delivery(
  p_now timestamptz, p_account text, p_id text, p_task text, p_event text, p_url text, p_body text, p_lane text, p_host text
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, task_id, event, url, body, lane, host, next_at, created_at)
    values (p_account, p_id, p_task, p_event, p_url, p_body, p_lane, p_host, p_now, p_now);
  perform send_delivery_job(p_account, p_id, 1, 0);
end $$;

-- First attempts and later ones have queues, and so slots, of their own: none waits behind a retry.
-- The attempt's number makes a job stale once that attempt was made.
-- room: webhooks
create function send_delivery_job(p_account text, p_id text, p_attempt int, p_after_ms float8)
  returns void language plpgsql as $$
begin
  perform engine_send(case p_attempt when 1 then 'delivery.send' else 'delivery.retry' end,
    jsonb_build_object('account_id', p_account, 'delivery_id', p_id, 'attempt', p_attempt),
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

-- Is there room for one more in the lane? p_more: places promised to those who queue for the host.
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

-- Takes places for attempts that are due: p_items [{account_id, id, attempt, claim}]. answer: send (the
-- place is the claim's), parked (whoever gives up a place sends a new job), stale (nothing to do). A
-- place that is taken already was handed on, or its worker is believed dead: the engine gave the job
-- to somebody else.
-- room: webhooks
create function begin_deliveries(p_now timestamptz, p_items jsonb) returns table (
  account_id text, id text, answer text, number int, event text, url text, body text, secret text, secret_before text
) language plpgsql as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  is_retry boolean;
  queued bigint;
begin
  -- A place that a crash of the server forgets is taken again by the job that comes back.
  perform set_config('synchronous_commit', 'off', true);
  perform lock_hosts(array(select x.host from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id));
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, attempt int, claim text) loop
    account_id := i.account_id;
    id := i.id;
    number := i.attempt;
    select * into d from deliveries x where x.account_id = i.account_id and x.id = i.id;
    if d.id is null or d.state <> 'waiting' or d.attempts + 1 <> i.attempt then
      answer := 'stale';
      return next;
      continue;
    end if;
    update places p set claim = i.claim where p.account_id = i.account_id and p.delivery_id = i.id;
    if not found then
      is_retry := d.attempts > 0;
      select count(*) into queued from parked k where k.lane = d.lane and k.queue_for = 'host';
      if not lane_has_room(d.lane, is_retry, queued)
          or exists (select from parked k where k.lane = d.lane and k.queue_for = 'lane') then
        perform park(d, is_retry, 'lane', p_now);
        answer := 'parked';
      elsif not host_has_room(d.host, is_retry)
          or exists (select from parked k where k.host = d.host and k.queue_for = 'host' and (is_retry or not k.retry)) then
        perform park(d, is_retry, 'host', p_now);
        answer := 'parked';
      else
        insert into places (account_id, delivery_id, lane, host, claim) values (i.account_id, i.id, d.lane, d.host, i.claim);
        answer := 'send';
      end if;
    else
      answer := 'send';
    end if;
    if answer = 'send' then
      event := d.event;
      url := d.url;
      body := d.body;
      select a.webhook_secret, case when a.webhook_secret_rotated_at > p_now - interval '24 hours' then a.webhook_secret_before end
        into secret, secret_before from accounts a where a.id = i.account_id;
    end if;
    return next;
  end loop;
end $$;

-- room: webhooks
create function park(d deliveries, p_retry boolean, p_queue_for text, p_now timestamptz) returns void language plpgsql as $$
begin
  insert into parked (account_id, delivery_id, lane, host, retry, since, queue_for)
    values (d.account_id, d.id, d.lane, d.host, p_retry, p_now, p_queue_for)
    on conflict do nothing;
end $$;

-- Writes down how attempts ended and hands their places on. p_items [{account_id, id, claim, started_at,
-- ended_at, duration_ms, status, error, answer, delivered, timed_out}]; p_delays_ms: the schedule. Who has
-- lost the claim changes nothing. Answers the queues that have new work.
-- room: webhooks
create function end_deliveries(p_now timestamptz, p_items jsonb, p_delays_ms float8[])
  returns table (account_id text, id text, state text, next_at timestamptz) language plpgsql as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  hosts text[];
  failed int;
  h text;
begin
  hosts := array(select x.host from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id);
  perform lock_hosts(hosts);
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, claim text, started_at timestamptz,
      ended_at timestamptz, duration_ms int, status int, error text, answer text, delivered boolean, timed_out boolean) loop
    account_id := i.account_id;
    id := i.id;
    delete from places p where p.account_id = i.account_id and p.delivery_id = i.id and p.claim = i.claim;
    if not found then
      state := 'lost';
      next_at := null;
      return next;
      continue;
    end if;
    select * into d from deliveries x where x.account_id = i.account_id and x.id = i.id for update;
    insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, status, error, answer)
      values (i.account_id, i.id, d.attempts + 1, i.started_at, i.ended_at, i.duration_ms, i.status, i.error, i.answer);
    if i.timed_out then
      insert into slow_lanes (lane) values (d.lane) on conflict do nothing;
    else
      delete from slow_lanes s where s.lane = d.lane;
    end if;
    failed := d.failures + case when i.delivered or d.by_hand then 0 else 1 end;
    state := case when i.delivered or d.delivered_at is not null then 'delivered'
      when failed > cardinality(p_delays_ms) then 'dropped' else 'waiting' end;
    next_at := case state when 'waiting' then i.ended_at + p_delays_ms[failed] * interval '1 ms' end;
    update deliveries x set state = end_deliveries.state, attempts = d.attempts + 1, failures = failed, by_hand = false,
        next_at = end_deliveries.next_at,
        delivered_at = coalesce(d.delivered_at, case when i.delivered then i.ended_at end),
        ended_at = case when end_deliveries.state <> 'waiting' then i.ended_at end
      where x.account_id = i.account_id and x.id = i.id;
    if state = 'waiting' then
      perform send_delivery_job(i.account_id, i.id, d.attempts + 2, p_delays_ms[failed]);
    end if;
    perform queue_for_host(d.lane);
    return next;
  end loop;
  for h in select distinct u.h from unnest(hosts) as u (h) order by 1 loop
    perform hand_on(h);
  end loop;
end $$;

-- Those who queue for the lane go on to queue for its host, as many as the lane has room for.
-- room: webhooks
create function queue_for_host(p_lane text) returns void language plpgsql as $$
declare
  k parked;
  queued bigint;
begin
  loop
    select * into k from parked x where x.lane = p_lane and x.queue_for = 'lane' order by x.retry, x.since limit 1;
    exit when k.lane is null;
    select count(*) into queued from parked x where x.lane = p_lane and x.queue_for = 'host';
    exit when not lane_has_room(p_lane, k.retry, queued);
    update parked x set queue_for = 'host' where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
  end loop;
end $$;

-- Hands free places of a host on: first attempts first, and of these the account that has the fewest there.
-- The accounts that queue are found one by one in the index, however many deliveries each of them has.
-- room: webhooks
create function hand_on(p_host text) returns void language plpgsql as $$
declare
  k parked;
begin
  loop
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
    delete from parked x where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
    insert into places (account_id, delivery_id, lane, host) values (k.account_id, k.delivery_id, k.lane, p_host);
    perform send_delivery_job(k.account_id, k.delivery_id,
      (select d.attempts + 1 from deliveries d where d.account_id = k.account_id and d.id = k.delivery_id), 0);
  end loop;
end $$;
