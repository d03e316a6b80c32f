-- The attempt of a test payload has no job: nobody notices when the process that makes it dies. So its place has an
-- end, by the clock of the database that jobs have, and counts no longer than that.

-- room: webhooks
alter table places add column expires_at timestamptz; -- null: the attempt of a job, or a place that was handed on

drop function open_test_delivery;
-- Writes a test payload that its caller sends at once: the place is taken, whatever else is in flight, for as long as
-- an attempt may take.
-- room: webhooks
create function open_test_delivery(
  p_now timestamptz, p_account text, p_id text, p_url text, p_body text, p_lane text, p_host text, p_claim text,
  p_timeout_ms float8
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, event, url, body, lane, host, by_hand, next_at, created_at)
    values (p_account, p_id, 'task.succeeded', p_url, p_body, p_lane, p_host, true, p_now, p_now);
  insert into places (account_id, delivery_id, lane, host, claim, taken_at, expires_at)
    values (p_account, p_id, p_lane, p_host, p_claim, p_now, pgboss.job_now() + p_timeout_ms * interval '1 ms');
end $$;

-- Is there room for one more in the lane? p_more: those of it who queue for the host already.
-- room: webhooks
create or replace function lane_has_room(p_lane text, p_retry boolean, p_more bigint) returns boolean language plpgsql as $$
declare
  room int := case when exists (select from slow_lanes s where s.lane = p_lane) then 1 when p_retry then 3 else 4 end;
begin
  return (select count(*) from places p
    where p.lane = p_lane and (p.expires_at is null or p.expires_at > pgboss.job_now())) + p_more < room;
end $$;

-- room: webhooks
create or replace function host_has_room(p_host text, p_retry boolean) returns boolean language plpgsql as $$
begin
  return (select count(*) from places p
    where p.host = p_host and (p.expires_at is null or p.expires_at > pgboss.job_now())) < case when p_retry then 48 else 64 end;
end $$;

-- As before, but for test payloads: one whose sender has not told how it ended, a minute after it must have, is over.
-- It is not sent again: the receiver may have had it, and nobody waits for its answer.
-- room: webhooks
create or replace function rescue_deliveries(p_now timestamptz, p_settled timestamptz) returns int language plpgsql
  set enable_seqscan = off as $$
declare
  v_sent int;
  p places;
  d deliveries;
begin
  for p in delete from places x where x.expires_at < pgboss.job_now() - interval '60 seconds' returning x.* loop
    d := end_attempt(p.account_id, p.delivery_id, p_now, false, '{}');
    if d.id is not null then
      insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, error)
        values (d.account_id, d.id, d.attempts, p.taken_at, p.taken_at, 0,
          'Nobody knows: the process that sent it ended before there was an answer.');
    end if;
  end loop;
  delete from places x where x.expires_at is null and x.taken_at < p_settled - interval '60 seconds'
    and not exists (select from engine_live_keys() live where live.key = x.delivery_id);
  perform send_next_job(x.account_id, x.id, extract(epoch from x.next_at - p_now) * 1000)
    from deliveries x
    where x.state = 'waiting' and x.created_at < p_settled
      and not exists (select from engine_live_keys() live where live.key = x.id)
      and not exists (select from places y where y.account_id = x.account_id and y.delivery_id = x.id)
      and not exists (select from parked k where k.account_id = x.account_id and k.delivery_id = x.id)
    limit 10000;
  get diagnostics v_sent = row_count;
  return v_sent;
end $$;
