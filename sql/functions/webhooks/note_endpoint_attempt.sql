-- Notes at an endpoint how an attempt of one of its deliveries ended: since when all of them have failed, and when one
-- arrived last, to the minute. A receiver that answers 410 wants no more: its endpoint is disabled, unless it has another
-- address by now. Tests count only when they arrive. Locks the endpoint if it changes. Returns nothing.
create or replace function note_endpoint_attempt(d deliveries, p_at timestamptz, p_delivered boolean, p_status int)
  returns void language plpgsql as $$
begin
  if p_delivered then
    update webhook_endpoints w set failing_since = null, last_delivered_at = p_at
      where w.account_id = d.account_id and w.id = d.endpoint_id and (w.failing_since is not null
        or coalesce(w.last_delivered_at, '-infinity') < p_at - interval '1 minute');
  elsif d.event_id is not null then
    update webhook_endpoints w set failing_since = coalesce(w.failing_since, p_at), last_failed_at = p_at
      where w.account_id = d.account_id and w.id = d.endpoint_id and (w.failing_since is null
        or coalesce(w.last_failed_at, '-infinity') < p_at - interval '1 minute');
    if p_status = 410 then
      update webhook_endpoints w set enabled = false, disabled_reason = 'gone', disabled_at = p_at, changed_at = p_at
        where w.account_id = d.account_id and w.id = d.endpoint_id and w.enabled and w.url = d.url;
    end if;
  end if;
end $$;
