-- Sends another job for a delivery; from now on those before it are stale. Locks the delivery. First attempts and later
-- ones have queues, and so workers, of their own: none waits behind a retry.
create or replace function send_next_job(p_account text, p_id text, p_after_ms float8) returns void language plpgsql as $$
declare
  d deliveries;
begin
  update deliveries x set jobs = x.jobs + 1 where x.account_id = p_account and x.id = p_id returning * into d;
  if d.id is not null then
    perform send_delivery_job(case when d.attempts = 0 and not d.replayed then 'delivery.send' else 'delivery.retry' end,
      p_account, p_id, d.jobs, p_after_ms);
  end if;
end $$;
