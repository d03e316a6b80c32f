-- Writes the delivery of an event to an endpoint and the job of its first attempt, in the caller's transaction, unless it
-- is there. Its id follows from the two, so that it is the same whoever writes it: the time of the event, and a hash. One
-- that is replayed is sent by the workers of retries. Locks nothing. Returns whether it was written.
create or replace function add_event_delivery(p_now timestamptz, w webhook_endpoints, e webhook_events, p_replayed boolean)
  returns boolean language plpgsql as $$
declare
  v_id constant text := 'dlv_' || substr(e.id, 5, 10) || left(md5(e.id || ' ' || w.id), 16);
begin
  insert into deliveries (account_id, id, event, url, body, lane, host, traceparent, next_at, created_at,
      endpoint_id, event_id, replayed)
    values (e.account_id, v_id, e.type, w.url, '', w.lane, w.host, e.traceparent, p_now, p_now, w.id, e.id, p_replayed)
    on conflict do nothing;
  if not found then
    return false;
  end if;
  perform send_delivery_job(case when p_replayed then 'delivery.retry' else 'delivery.send' end, e.account_id, v_id, 1, 0);
  return true;
end $$;
