-- Lets deliveries that queue for an endpoint queue for its host, as many as the endpoint has room for. The caller holds
-- the lock of the host. Returns nothing.
create or replace function promote_throttled(p_endpoint text) returns void language plpgsql as $$
declare
  k throttled_deliveries;
  v_queued bigint;
begin
  loop
    select * into k from throttled_deliveries x where x.endpoint = p_endpoint and x.queue_for = 'endpoint'
      order by x.retry, x.since limit 1;
    exit when k.endpoint is null;
    select count(*) into v_queued from throttled_deliveries x
      where x.endpoint = p_endpoint and x.queue_for = 'host' and x.retry <= k.retry;
    exit when not endpoint_has_room(p_endpoint, k.retry, v_queued);
    update throttled_deliveries x set queue_for = 'host'
      where x.account_id = k.account_id and x.delivery_id = k.delivery_id;
  end loop;
end $$;
