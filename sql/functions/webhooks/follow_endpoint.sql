-- Returns a waiting delivery of an endpoint as it is to be sent: to the endpoint's address of now, unless it queues for the
-- one before or is being sent to it; or dropped, since its endpoint w is disabled, or gone (null). A slot that was handed
-- on to it is given up with the address that it is for. The caller holds the locks of both hosts.
create or replace function follow_endpoint(p_now timestamptz, d deliveries, w webhook_endpoints) returns deliveries language plpgsql as $$
declare
  v_lane constant text := d.lane;
  v_host constant text := d.host;
begin
  if w.id is null or not w.enabled then
    perform drop_delivery(p_now, d);
    d.state := 'dropped';
  elsif (w.url, w.lane, w.host) <> (d.url, d.lane, d.host)
      and not exists (select from delivery_slots p
        where p.account_id = d.account_id and p.delivery_id = d.id and p.claim is not null)
      and not exists (select from throttled_deliveries k where k.account_id = d.account_id and k.delivery_id = d.id) then
    update deliveries x set url = w.url, lane = w.lane, host = w.host where x.account_id = d.account_id and x.id = d.id
      returning * into d;
    delete from delivery_slots p where p.account_id = d.account_id and p.delivery_id = d.id;
    if found then
      perform promote_throttled(v_lane);
      perform hand_on(v_host, p_now);
    end if;
  end if;
  return d;
end $$;
