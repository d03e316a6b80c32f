-- Takes a delivery slot, or queues for one. The caller holds the lock of the host. Returns send or throttled.
--
-- "retry <= v_retry": nobody waits behind retries but retries; an index finds it, however many of them there are. Who
-- queues longest is a matter of the database's clock, since those of nodes may differ.
create or replace function take_slot(d deliveries, p_claim text, p_now timestamptz) returns text language plpgsql as $$
declare
  v_retry boolean := (d.attempts > 0 or d.replayed) and not d.by_hand;
  v_queued bigint;
  v_full text;
begin
  update delivery_slots p set claim = p_claim, taken_at = p_now where p.account_id = d.account_id and p.delivery_id = d.id;
  if found then
    return 'send';
  end if;
  select count(*) into v_queued from throttled_deliveries k
    where k.endpoint = d.lane and k.queue_for = 'host' and k.retry <= v_retry;
  v_full := case
    when not endpoint_has_room(d.lane, v_retry, v_queued)
      or exists (select from throttled_deliveries k
        where k.endpoint = d.lane and k.queue_for = 'endpoint' and k.retry <= v_retry) then 'endpoint'
    when not host_has_room(d.host, v_retry)
      or exists (select from throttled_deliveries k
        where k.host = d.host and k.queue_for = 'host' and k.retry <= v_retry) then 'host' end;
  if v_full is null then
    delete from throttled_deliveries k where k.account_id = d.account_id and k.delivery_id = d.id;
    insert into delivery_slots (account_id, delivery_id, endpoint, host, claim, taken_at)
      values (d.account_id, d.id, d.lane, d.host, p_claim, p_now);
    return 'send';
  end if;
  insert into throttled_deliveries (account_id, delivery_id, endpoint, host, retry, since, queue_for)
    values (d.account_id, d.id, d.lane, d.host, v_retry, clock_timestamp(), v_full)
    on conflict do nothing;
  return 'throttled';
end $$;
