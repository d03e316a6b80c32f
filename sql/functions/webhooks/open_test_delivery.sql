-- Writes a test payload that its caller sends at once: the slot is taken, whatever else is in flight, for p_timeout_ms.
-- Locks nothing. Returns nothing.
create or replace function open_test_delivery(
  p_now timestamptz, p_account text, p_id text, p_url text, p_body text, p_lane text, p_host text, p_claim text,
  p_timeout_ms float8
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, event, url, body, lane, host, by_hand, next_at, created_at)
    values (p_account, p_id, 'task.succeeded', p_url, p_body, p_lane, p_host, true, p_now, p_now);
  insert into places (account_id, delivery_id, lane, host, claim, taken_at, expires_at)
    values (p_account, p_id, p_lane, p_host, p_claim, p_now, pgboss.job_now() + p_timeout_ms * interval '1 ms');
end $$;
