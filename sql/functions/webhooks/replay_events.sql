-- Sends the events from p_first to before p_end that an endpoint asks for, by their ids: those whose delivery was dropped
-- or never written, and with p_which = 'all' those that arrived, too. What is under way is left alone. p_max at most, the
-- oldest first; they wait behind first attempts, and are tried as often as new ones. With p_counts_only nothing is changed.
-- Locks the deliveries. Returns how many, when the last of them happened, and whether there are more.
create or replace function replay_events(p_now timestamptz, p_account text, p_endpoint text, p_first text, p_end text,
  p_which text, p_max int, p_counts_only boolean, out events int, out last_at timestamptz, out has_more boolean) language plpgsql as $$
declare
  w webhook_endpoints;
  r record;
begin
  events := 0;
  has_more := false;
  select * into w from webhook_endpoints x where x.account_id = p_account and x.id = p_endpoint;
  for r in
    select e as event, d.id as delivery_id
      from webhook_events e
      left join deliveries d on d.account_id = e.account_id and d.event_id = e.id and d.endpoint_id = w.id
     where e.account_id = p_account and e.id >= p_first and e.id < p_end
       and endpoint_takes(w, e)
       and (d.id is null or d.state = 'dropped' or p_which = 'all' and d.state = 'delivered')
     order by e.id limit p_max + 1
  loop
    if events = p_max then
      has_more := true;
      exit;
    end if;
    events := events + 1;
    last_at := (r.event).created_at;
    continue when p_counts_only;
    if r.delivery_id is null then
      perform add_event_delivery(p_now, w, r.event, true);
    else
      update deliveries x set state = 'waiting', replayed = true, by_hand = false, failures = 0, next_at = p_now, ended_at = null,
          url = w.url, lane = w.lane, host = w.host
        where x.account_id = p_account and x.id = r.delivery_id and x.state <> 'waiting';
      if found then
        perform send_next_job(p_account, r.delivery_id, 0);
      end if;
    end if;
  end loop;
end $$;
