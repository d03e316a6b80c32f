-- Returns a waiting delivery of an endpoint as it is to be sent: to the endpoint's address of now, unless it has a slot
-- or queues for the one before; or dropped, since its endpoint w is disabled, or gone (null). The caller holds the locks
-- of both hosts.
create or replace function follow_endpoint(p_now timestamptz, d deliveries, w webhook_endpoints) returns deliveries language plpgsql as $$
begin
  if w.id is null or not w.enabled then
    perform drop_delivery(p_now, d);
    d.state := 'dropped';
  elsif (w.url, w.lane, w.host) <> (d.url, d.lane, d.host)
      and not exists (select from delivery_slots p where p.account_id = d.account_id and p.delivery_id = d.id)
      and not exists (select from throttled_deliveries k where k.account_id = d.account_id and k.delivery_id = d.id) then
    update deliveries x set url = w.url, lane = w.lane, host = w.host where x.account_id = d.account_id and x.id = d.id
      returning * into d;
  end if;
  return d;
end $$;
