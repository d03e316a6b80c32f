-- Ends a waiting delivery whose endpoint is gone or disabled without another attempt, and hands its slot on. The caller
-- holds the lock of its host. Returns nothing.
create or replace function drop_delivery(p_now timestamptz, d deliveries) returns void language plpgsql as $$
begin
  delete from throttled_deliveries k where k.account_id = d.account_id and k.delivery_id = d.id;
  delete from delivery_slots p where p.account_id = d.account_id and p.delivery_id = d.id;
  update deliveries x set state = case when x.delivered_at is null then 'dropped' else 'delivered' end,
      by_hand = false, next_at = null, ended_at = p_now
    where x.account_id = d.account_id and x.id = d.id;
  perform promote_throttled(d.lane);
  perform hand_on(d.host, p_now);
end $$;
