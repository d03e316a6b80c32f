-- Lets deliveries that queue for an endpoint queue for its host, as many as the endpoint has room for. The caller holds
-- the lock of the host. Returns nothing.
create or replace function queue_for_host(p_lane text) returns void language plpgsql as $$
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
