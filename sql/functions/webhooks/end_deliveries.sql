-- Writes down how attempts ended and hands their slots on: p_items is [{account_id, id, claim, started_at, ended_at,
-- duration_ms, status, error, answer, delivered, timed_out}], p_delays_ms the schedule. Locks the hosts in the order of
-- their names, and endpoints of accounts. Returns each delivery's state, or lost for an attempt whose claim was taken away, which changes nothing.
create or replace function end_deliveries(p_now timestamptz, p_items jsonb, p_delays_ms float8[])
  returns table (account_id text, id text, state text, next_at timestamptz) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  v_hosts text[];
  v_host text;
  v_endpoints text[];
  v_endpoint text;
begin
  v_hosts := array(select x.host from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id);
  perform lock_hosts(v_hosts);
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, claim text, started_at timestamptz,
      ended_at timestamptz, duration_ms int, status int, error text, answer text, delivered boolean, timed_out boolean) loop
    d := null;
    delete from delivery_slots p where p.account_id = i.account_id and p.delivery_id = i.id and p.claim = i.claim;
    if found then
      d := end_attempt(i.account_id, i.id, i.ended_at, i.delivered, p_delays_ms);
    end if;
    if d.id is not null then
      insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, status, error, answer)
        values (i.account_id, i.id, d.attempts, i.started_at, i.ended_at, i.duration_ms, i.status, i.error, i.answer);
      if i.timed_out then
        insert into slow_endpoints (endpoint, since) values (d.lane, p_now)
          on conflict (endpoint) do update set since = p_now;
      else
        delete from slow_endpoints s where s.endpoint = d.lane;
      end if;
      v_endpoints := v_endpoints || d.lane;
      if d.endpoint_id is not null then
        perform note_endpoint_attempt(d, i.ended_at, i.delivered, i.status);
      end if;
    end if;
    return query select i.account_id, i.id, coalesce(d.state, 'lost'), d.next_at;
  end loop;
  for v_endpoint in select distinct u.l from unnest(v_endpoints) as u (l) loop
    perform promote_throttled(v_endpoint);
  end loop;
  for v_host in select distinct u.h from unnest(v_hosts) as u (h) order by 1 loop
    perform hand_on(v_host, p_now);
  end loop;
end $$;
