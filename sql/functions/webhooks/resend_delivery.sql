-- Sends a delivery once more, now, outside the schedule. Locks the host, then the delivery. Returns sent, missing, busy
-- (its first attempt is still to come, or one is under way) or disabled (its endpoint is, or is gone).
create or replace function resend_delivery(p_now timestamptz, p_account text, p_id text) returns text language plpgsql as $$
declare
  d deliveries;
begin
  perform lock_hosts(array(select x.host from deliveries x where x.account_id = p_account and x.id = p_id));
  select * into d from deliveries x where x.account_id = p_account and x.id = p_id for update;
  if d.id is null then
    return 'missing';
  elsif d.endpoint_id is not null and not exists (select from webhook_endpoints w
      where w.account_id = p_account and w.id = d.endpoint_id and w.enabled) then
    return 'disabled';
  elsif d.attempts = 0 or d.by_hand
      or exists (select from delivery_slots p where p.account_id = p_account and p.delivery_id = p_id)
      or exists (select from throttled_deliveries k where k.account_id = p_account and k.delivery_id = p_id) then
    return 'busy';
  end if;
  update deliveries x set state = 'waiting', by_hand = true, next_at = p_now, ended_at = null
    where x.account_id = p_account and x.id = p_id;
  perform send_next_job(p_account, p_id, 0);
  return 'sent';
end $$;
