-- Moves on what queues at one host, in case nobody else does. Locks the host: with one call per host, each holds its
-- lock alone. Returns nothing.
create or replace function move_backlog(p_host text, p_now timestamptz)
  returns void language plpgsql set enable_seqscan = off as $$
declare
  v_endpoint text;
begin
  perform lock_hosts(array[p_host]);
  for v_endpoint in select distinct k.endpoint from throttled_deliveries k
      where k.host = p_host and k.queue_for = 'endpoint' loop
    perform promote_throttled(v_endpoint);
  end loop;
  perform hand_on(p_host, p_now);
end $$;
