-- Hands free slots of a host on: first attempts first, and of these the account that has the fewest there. The caller
-- holds the lock of the host. A delivery whose endpoint is full meanwhile, by first attempts that went ahead or because
-- it has become slow, queues for its endpoint again.
--
-- The accounts that queue are found one by one in the index, however many deliveries each of them has.
create or replace function hand_on(p_host text, p_now timestamptz) returns void language plpgsql as $$
declare
  k throttled_deliveries;
begin
  while host_has_room(p_host, false) loop
    with recursive queued (account_id) as (
      (select x.account_id from throttled_deliveries x where x.host = p_host and x.queue_for = 'host'
        order by x.account_id limit 1)
      union all
      select (select x.account_id from throttled_deliveries x
        where x.host = p_host and x.queue_for = 'host' and x.account_id > q.account_id
        order by x.account_id limit 1)
      from queued q where q.account_id is not null)
    select first.* into k from queued q, lateral (
        select * from throttled_deliveries x where x.host = p_host and x.queue_for = 'host' and x.account_id = q.account_id
          order by x.retry, x.since limit 1) first
      where q.account_id is not null
      order by first.retry,
        (select count(*) from delivery_slots p where p.host = p_host and p.account_id = q.account_id), first.since
      limit 1;
    exit when k.account_id is null or not host_has_room(p_host, k.retry);
    if not endpoint_has_room(k.endpoint, k.retry, 0) then
      update throttled_deliveries x set queue_for = 'endpoint'
        where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
      continue;
    end if;
    delete from throttled_deliveries x where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
    insert into delivery_slots (account_id, delivery_id, endpoint, host, taken_at)
      values (k.account_id, k.delivery_id, k.endpoint, p_host, p_now);
    perform send_next_job(k.account_id, k.delivery_id, 0);
  end loop;
end $$;
