-- Sends jobs for deliveries that wait without a job, a slot or a place in the backlog, as after a restored backup, and
-- frees slots without a job; p_settled: what is younger may still be under way. Locks the deliveries, no host, and
-- leaves what is too much for one call to the next. Returns how many got a job.
--
-- A test payload whose sender has not reported its end, a minute after it must have, is over. It is not sent again: the
-- receiver may have had it, and nobody waits for its answer.
create or replace function rescue_deliveries(p_now timestamptz, p_settled timestamptz) returns int language plpgsql
  set enable_seqscan = off as $$
declare
  v_sent int;
  p delivery_slots;
  d deliveries;
begin
  for p in delete from delivery_slots x where x.expires_at < pgboss.job_now() - interval '60 seconds' returning x.* loop
    d := end_attempt(p.account_id, p.delivery_id, p_now, false, '{}');
    if d.id is not null then
      insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, error)
        values (d.account_id, d.id, d.attempts, p.taken_at, p.taken_at, 0,
          'Nobody knows: the process that sent it ended before there was an answer.');
    end if;
  end loop;
  delete from delivery_slots x where x.expires_at is null and x.taken_at < p_settled - interval '60 seconds'
    and not exists (select from engine_live_keys() live where live.key = x.delivery_id);
  perform send_next_job(x.account_id, x.id, extract(epoch from x.next_at - p_now) * 1000)
    from deliveries x
    where x.state = 'waiting' and x.created_at < p_settled
      and not exists (select from engine_live_keys() live where live.key = x.id)
      and not exists (select from delivery_slots y where y.account_id = x.account_id and y.delivery_id = x.id)
      and not exists (select from throttled_deliveries k where k.account_id = x.account_id and k.delivery_id = x.id)
    limit 10000;
  get diagnostics v_sent = row_count;
  return v_sent;
end $$;
