-- Publishes an event of an account in the caller's transaction: stores it if an endpoint of the account asks for it, and
-- writes its delivery to each of these that is enabled. p_event has account_id, id and type; of a task also task_id,
-- model, key_id, metadata (its JSON text) and traceparent. p_data is the JSON text of what happened. Locks nothing.
-- Returns the number of deliveries.
create or replace function publish_event(p_now timestamptz, p_event jsonb, p_data text) returns int language plpgsql as $$
declare
  e webhook_events := jsonb_populate_record(null::webhook_events, p_event);
  w webhook_endpoints;
  v_count int := 0;
begin
  for w in select x.* from webhook_endpoints x where x.account_id = e.account_id order by x.id loop
    if e.project_id is null and e.key_id is not null then
      e.project_id := project_of_key(e.key_id);
    end if;
    continue when not endpoint_takes(w, e);
    if e.body is null then
      e.created_at := p_now;
      e.body := '{"id":"' || e.id || '","type":"' || e.type || '","created_at":"'
        || to_char(p_now at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        || '","account_id":"' || e.account_id || '","data":' || p_data || '}';
      insert into webhook_events select e.*;
    end if;
    if w.enabled and add_event_delivery(p_now, w, e, false) then
      v_count := v_count + 1;
    end if;
  end loop;
  return v_count;
end $$;
