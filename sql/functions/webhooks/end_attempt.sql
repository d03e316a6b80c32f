-- Notes that an attempt of a delivery was made, and sends the job of the next one if the schedule has one; an attempt
-- that was asked for by hand leaves the schedule as it was, and a delivery that has arrived once stays delivered. Locks
-- the delivery. Returns its new row; null if it is gone.
create or replace function end_attempt(p_account text, p_id text, p_ended_at timestamptz, p_delivered boolean, p_delays_ms float8[])
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
