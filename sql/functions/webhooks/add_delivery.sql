-- Writes a delivery and the job of its first attempt, in the caller's transaction: p_delivery has account_id, id,
-- task_id, event, url, body, lane, host and traceparent. Locks nothing. Returns nothing.
create or replace function add_delivery(p_now timestamptz, p_delivery jsonb) returns void language plpgsql as $$
declare
  d constant deliveries := jsonb_populate_record(null::deliveries, p_delivery);
begin
  insert into deliveries (account_id, id, task_id, event, url, body, lane, host, traceparent, next_at, created_at)
    values (d.account_id, d.id, d.task_id, d.event, d.url, d.body, d.lane, d.host, d.traceparent, p_now, p_now);
  perform send_delivery_job('delivery.send', d.account_id, d.id, 1, 0);
end $$;
