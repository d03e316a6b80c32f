-- Writes a test payload that its caller sends at once: p_delivery has account_id, id, event (task.succeeded unless it says
-- another one), url, body, lane, host and perhaps endpoint_id. The slot is taken under p_claim, whatever else is in flight, for p_timeout_ms.
-- Locks nothing and returns nothing.
create or replace function add_test_delivery(p_now timestamptz, p_delivery jsonb, p_claim text, p_timeout_ms float8)
  returns void language plpgsql as $$
declare
  d constant deliveries := jsonb_populate_record(null::deliveries, p_delivery);
begin
  insert into deliveries (account_id, id, event, url, body, lane, host, by_hand, next_at, created_at,
      endpoint_id)
    values (d.account_id, d.id, coalesce(d.event, 'task.succeeded'), d.url, d.body, d.lane, d.host, true, p_now, p_now,
      d.endpoint_id);
  insert into delivery_slots (account_id, delivery_id, endpoint, host, claim, taken_at, expires_at)
    values (d.account_id, d.id, d.lane, d.host, p_claim, p_now, pgboss.job_now() + p_timeout_ms * interval '1 ms');
end $$;
