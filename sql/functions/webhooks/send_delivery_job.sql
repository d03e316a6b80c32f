-- Sends the job of an attempt of a delivery, in the caller's transaction. Returns nothing.
create or replace function send_delivery_job(p_queue text, p_account text, p_id text, p_job int, p_after_ms float8)
  returns void language plpgsql as $$
begin
  perform engine_send(p_queue, jsonb_build_object('account_id', p_account, 'delivery_id', p_id, 'job', p_job),
    case when p_after_ms > 0 then pgboss.job_now() + p_after_ms * interval '1 ms' end, p_id);
end $$;
