-- Writes a delivery and the job of its first attempt, in the caller's transaction. Locks nothing. Returns nothing.
create or replace function queue_delivery(
  p_now timestamptz, p_account text, p_id text, p_task text, p_event text, p_url text, p_body text, p_lane text, p_host text
) returns void language plpgsql as $$
begin
  insert into deliveries (account_id, id, task_id, event, url, body, lane, host, next_at, created_at)
    values (p_account, p_id, p_task, p_event, p_url, p_body, p_lane, p_host, p_now, p_now);
  perform send_delivery_job('delivery.send', p_account, p_id, 1, 0);
end $$;
