-- add_delivery for calls of finish_task that are under way while functions are replaced.
create or replace function queue_delivery(
  p_now timestamptz, p_account text, p_id text, p_task text, p_event text, p_url text, p_body text, p_lane text, p_host text
) returns void language plpgsql as $$
begin
  perform add_delivery(p_now, jsonb_build_object('account_id', p_account, 'id', p_id, 'task_id', p_task,
    'event', p_event, 'url', p_url, 'body', p_body, 'lane', p_lane, 'host', p_host));
end $$;
