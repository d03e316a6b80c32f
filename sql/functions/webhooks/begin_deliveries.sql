-- Takes delivery slots for attempts that are due: p_items is [{account_id, id, job, claim}]. Locks the hosts, then the
-- deliveries' slots. Returns an answer for each: send (the slot is the claim's), throttled (no slot: whoever gives one
-- up sends a new job) or stale (nothing to do).
--
-- A delivery to an endpoint of its account goes to the address that this has by now, signed with its secret, or is
-- dropped where it is disabled or gone; its body is that of its event, and it is dropped where that was removed as a
-- replay asked for it.
--
-- A slot that is taken already was handed on, or its worker is believed dead: the queue gave the job to somebody else.
-- enable_seqscan is off for plans that were made while the tables were empty.
create or replace function begin_deliveries(p_now timestamptz, p_items jsonb) returns table (
  account_id text, id text, answer text, number int, event text, url text, body text,
  webhook_secret text, webhook_secret_before text, webhook_secret_rotated_at timestamptz
) language plpgsql set enable_seqscan = off as $$
#variable_conflict use_column
declare
  i record;
  d deliveries;
  w webhook_endpoints;
  v_hosts text[];
begin
  -- A slot that a crash of the server forgets is taken again by the job that comes back.
  perform set_config('synchronous_commit', 'off', true);
  v_hosts := array(select unnest(array[x.host, y.host]) from jsonb_to_recordset(p_items) as r (account_id text, id text)
    join deliveries x on x.account_id = r.account_id and x.id = r.id
    left join webhook_endpoints y on y.account_id = x.account_id and y.id = x.endpoint_id);
  perform lock_hosts(v_hosts);
  for i in select * from jsonb_to_recordset(p_items) as r (account_id text, id text, job int, claim text) loop
    account_id := i.account_id;
    id := i.id;
    select * into d from deliveries x where x.account_id = i.account_id and x.id = i.id;
    if d.endpoint_id is not null and d.state = 'waiting' and d.jobs = i.job then
      select * into w from webhook_endpoints x where x.account_id = d.account_id and x.id = d.endpoint_id;
      d := follow_endpoint(p_now, d, w);
    end if;
    answer := case when d.state = 'waiting' and d.jobs = i.job then take_slot(d, i.claim, p_now) else 'stale' end;
    if answer = 'send' then
      number := d.attempts + 1;
      event := d.event;
      url := d.url;
      body := d.body;
      if d.event_id is not null then
        select x.body into body from webhook_events x where x.account_id = d.account_id and x.id = d.event_id;
        if not found then
          perform drop_delivery(p_now, d);
          answer := 'stale';
        end if;
      end if;
      select a.webhook_secret, a.webhook_secret_before, a.webhook_secret_rotated_at
        into webhook_secret, webhook_secret_before, webhook_secret_rotated_at from accounts a where a.id = i.account_id;
      if d.endpoint_id is not null then
        webhook_secret := w.secret;
        webhook_secret_before := w.secret_before;
        webhook_secret_rotated_at := w.secret_rotated_at;
      end if;
    end if;
    return next;
  end loop;
end $$;
