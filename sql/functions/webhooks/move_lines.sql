-- Moves on what queues at one host, in case nobody else does. Locks the host: with one call per host, each holds its
-- lock alone. Returns nothing.
create or replace function move_lines(p_host text, p_now timestamptz) returns void language plpgsql set enable_seqscan = off as $$
declare
  v_lane text;
begin
  perform lock_hosts(array[p_host]);
  for v_lane in select distinct k.lane from parked k where k.host = p_host and k.queue_for = 'lane' loop
    perform queue_for_host(v_lane);
  end loop;
  perform hand_on(p_host, p_now);
end $$;
