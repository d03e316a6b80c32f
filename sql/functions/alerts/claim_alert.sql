-- Claims the message about an alert that is due by a channel, unless p_per_hour were claimed within the hour. Locks the
-- alert, then the channel of its account. Returns the answer (claimed, full or none) and, of a claimed one, its number and
-- event: whoever has them sends it, nobody else.
create or replace function claim_alert(p_now timestamptz, p_alert text, p_channel text, p_per_hour int)
  returns table (answer text, number int, event text, claims int, failures int) language plpgsql as $$
#variable_conflict use_column
declare
  a alerts;
  n alert_notices;
  v_event text;
begin
  select * into a from alerts x where x.id = p_alert for update;
  if a.id is not null then
    perform pg_advisory_xact_lock(hashtextextended('alerts ' || p_channel || ' ' || coalesce(a.account_id, ''), 0));
    select * into n from alert_notices x where x.alert_id = p_alert and x.channel = p_channel order by x.number desc limit 1;
    v_event := alert_event(a, n, p_now);
  end if;
  if v_event is null then
    return query select 'none', null::int, null::text, null::int, null::int;
    return;
  elsif not (n.state = 'waiting' or n.state = 'claimed' and n.claims < 2) then
    n := null; -- the message before is over: this is another one
  end if;
  if (select count(*) from alert_notices x
      where x.scope = coalesce(a.account_id, '') and x.channel = p_channel and x.claimed_at > p_now - interval '1 hour'
        and (x.alert_id <> p_alert or x.number is distinct from n.number)) >= p_per_hour then
    return query select 'full', null::int, null::text, null::int, null::int;
  elsif n.number is not null then
    return query update alert_notices x
      set state = 'claimed', event = v_event, level = a.level, claimed_at = p_now, retry_at = null, error = null,
          claims = case n.state when 'claimed' then x.claims + 1 else 1 end
      where x.alert_id = p_alert and x.channel = p_channel and x.number = n.number
      returning 'claimed'::text, x.number, x.event, x.claims, x.failures;
  else
    return query insert into alert_notices as x (alert_id, channel, scope, number, event, level, state, claims, claimed_at)
      values (p_alert, p_channel, coalesce(a.account_id, ''),
        (select coalesce(max(y.number), 0) + 1 from alert_notices y where y.alert_id = p_alert and y.channel = p_channel),
        v_event, a.level, 'claimed', 1, p_now)
      returning 'claimed'::text, x.number, x.event, x.claims, x.failures;
  end if;
end $$;
